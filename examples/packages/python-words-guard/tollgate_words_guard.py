"""A guard for Tollgate in Python: rejects requests that contain a listed word."""

import asyncio
import json
import sys

DEFINITION = {
    "api": 1,
    "kind": "middleware",
    "name": "words",
    "summary": "Rejects requests that contain a listed word",
    "sends": "nowhere",
    "options": {
        "type": "object",
        "additionalProperties": False,
        "required": ["words"],
        "properties": {
            "words": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Words that are not allowed",
            }
        },
    },
}


def texts(value):
    """Yields every text in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


class Rejection(Exception):
    """A rejection, with the message for the client."""


class Guard:
    """One connection: one entry in gateway.yaml, of one gateway process."""

    def __init__(self):
        self.words = []

    def describe(self, _params):
        return DEFINITION

    def setup(self, params):
        self.words = [word.lower() for word in params["options"]["words"]]
        return {"hooks": ["inspect"]}

    def inspect(self, params):
        for text in texts(params["request"]):
            if any(word in text.lower() for word in self.words):
                raise Rejection("The request contains a word that is not allowed.")
        return {"effects": [["addLabel", "words", "clean"]]}

    def end(self, _params):
        return {}

    def reply(self, call, method, params):
        handler = getattr(self, method, None) if method in ("describe", "setup", "inspect", "end") else None
        if handler is None:
            return {"reply": call, "error": f"unknown method {method}"}
        try:
            return {"reply": call, "value": handler(params or {})}
        except Rejection as rejection:
            fault = {"kind": "forbidden", "code": "words", "message": str(rejection)}
            return {"reply": call, "fault": fault}
        except Exception as error:
            return {"reply": call, "error": repr(error)}


async def serve(reader, writer):
    guard = Guard()
    while line := await reader.readline():
        frame = json.loads(line)
        if "call" in frame:
            answer = guard.reply(frame["call"], frame["method"], frame.get("params"))
        elif frame.get("notify") == "ping":
            answer = {"notify": "pong"}
        else:
            continue
        writer.write(json.dumps(answer).encode() + b"\n")
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
