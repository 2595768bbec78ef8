"""A guard of Tollgate in Python: refuses requests that have one of an operator's words in them."""

import asyncio
import json
import sys

DEFINITION = {
    "api": 1,
    "kind": "middleware",
    "name": "words",
    "summary": "Refuses requests that have one of these words in them",
    "sends": "nowhere",
    "options": {
        "type": "object",
        "additionalProperties": False,
        "required": ["words"],
        "properties": {
            "words": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The words",
            }
        },
    },
}


def texts(value):
    """Every text in a request, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)


class Refusal(Exception):
    """What the client is told."""


class Guard:
    """One connection: one place in gateway.yaml, of one process of the gateway."""

    def __init__(self):
        self.words = []

    def describe(self, _given):
        return DEFINITION

    def setup(self, given):
        self.words = [word.lower() for word in given["options"]["words"]]
        return {"hooks": ["inspect"]}

    def inspect(self, given):
        for text in texts(given["request"]):
            if any(word in text.lower() for word in self.words):
                raise Refusal("These words may not be sent from here.")
        return {"does": [["label", "words", "clean"]]}

    def end(self, _given):
        return {}

    def answer(self, ask, name, given):
        work = getattr(self, name, None) if name in ("describe", "setup", "inspect", "end") else None
        if work is None:
            return {"answer": ask, "error": f"there is no {name}"}
        try:
            return {"answer": ask, "value": work(given or {})}
        except Refusal as refusal:
            fault = {"kind": "forbidden", "code": "words", "message": str(refusal)}
            return {"answer": ask, "fault": fault}
        except Exception as error:
            return {"answer": ask, "error": repr(error)}


async def serve(reader, writer):
    guard = Guard()
    while line := await reader.readline():
        frame = json.loads(line)
        if "ask" in frame:
            said = guard.answer(frame["ask"], frame["name"], frame.get("with"))
        elif frame.get("tell") == "ping":
            said = {"tell": "pong"}
        else:
            continue
        writer.write(json.dumps(said).encode() + b"\n")
        await writer.drain()
    writer.close()


async def main(path):
    server = await asyncio.start_unix_server(serve, path, limit=64 * 1024 * 1024)
    async with server:
        await server.serve_forever()


def run():
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "guard.sock"))


if __name__ == "__main__":
    run()
