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
    return {"request": {"kind": "chat", "turns": [turn]}}


SETUP = {"ask": 1, "name": "setup", "with": {"id": "words", "options": {"words": ["Tulip"]}}}


class Words(unittest.IsolatedAsyncioTestCase):
    async def test_what_it_is(self):
        [said] = await told({"ask": 1, "name": "describe"})
        self.assertEqual(said["value"]["kind"], "middleware")

    async def test_lets_pass_and_refuses(self):
        passes = {"ask": 2, "name": "inspect", "with": says("roses")}
        refused = {"ask": 3, "name": "inspect", "with": says("a TULIP")}
        _, clean, no = await told(SETUP, passes, refused)
        self.assertEqual(clean, {"answer": 2, "value": {"does": [["label", "words", "clean"]]}})
        self.assertEqual(no["fault"]["kind"], "forbidden")

    async def test_what_it_does_not_know(self):
        gone, pong = await told(
            {"tell": "over", "with": {"x": "1"}},
            {"ask": 4, "name": "rewrite", "with": {}},
            {"tell": "ping"},
        )
        self.assertEqual([gone["answer"], pong], [4, {"tell": "pong"}])
        self.assertIn("error", gone)


if __name__ == "__main__":
    unittest.main()
