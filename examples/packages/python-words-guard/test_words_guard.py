"""One connection to the guard, as the gateway makes it."""

import asyncio
import json
import os
import tempfile
import unittest

import tollgate_words_guard as guard


async def told(*frames):
    """What it answers to these, in its order."""
    path = os.path.join(tempfile.mkdtemp(), "guard.sock")
    async with await asyncio.start_unix_server(guard.serve, path):
        reader, writer = await asyncio.open_unix_connection(path)
        for frame in frames:
            writer.write(json.dumps(frame).encode() + b"\n")
        writer.write_eof()
        lines = (await reader.read()).splitlines()
        writer.close()
    return [json.loads(line) for line in lines]


def says(words):
    turn = {"role": "user", "blocks": [{"type": "text", "text": words}]}
    return {"request": {"operation": "chat", "turns": [turn]}}


SETUP = {"call": 1, "method": "setup", "params": {"id": "words", "options": {"words": ["Tulip"]}}}


class Words(unittest.IsolatedAsyncioTestCase):
    async def test_what_it_is(self):
        [said] = await told({"call": 1, "method": "describe"})
        self.assertEqual(said["value"]["kind"], "middleware")

    async def test_lets_pass_and_refuses(self):
        passes = {"call": 2, "method": "inspect", "params": says("roses")}
        refused = {"call": 3, "method": "inspect", "params": says("a TULIP")}
        _, clean, no = await told(SETUP, passes, refused)
        self.assertEqual(clean, {"reply": 2, "value": {"effects": [["addLabel", "words", "clean"]]}})
        self.assertEqual(no["fault"]["kind"], "forbidden")

    async def test_what_it_does_not_know(self):
        gone, pong = await told(
            {"notify": "request_end", "params": {"exchange": "1"}},
            {"call": 4, "method": "rewrite", "params": {}},
            {"notify": "ping"},
        )
        self.assertEqual([gone["reply"], pong], [4, {"notify": "pong"}])
        self.assertIn("error", gone)


if __name__ == "__main__":
    unittest.main()
