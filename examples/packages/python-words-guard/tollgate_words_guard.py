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
        return {"effects": [["addLabel", "words", "clean"]]}

    def end(self, _given):
        return {}

    def reply(self, call, method, given):
        work = getattr(self, method, None) if method in ("describe", "setup", "inspect", "end") else None
        if work is None:
            return {"reply": call, "error": f"there is no {method}"}
        try:
            return {"reply": call, "value": work(given or {})}
        except Refusal as refusal:
            fault = {"kind": "forbidden", "code": "words", "message": str(refusal)}
            return {"reply": call, "fault": fault}
        except Exception as error:
            return {"reply": call, "error": repr(error)}


async def serve(reader, writer):
    guard = Guard()
    while line := await reader.readline():
        frame = json.loads(line)
        if "call" in frame:
            said = guard.reply(frame["call"], frame["method"], frame.get("params"))
        elif frame.get("notify") == "ping":
            said = {"notify": "pong"}
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
