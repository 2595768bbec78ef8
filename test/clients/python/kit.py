"""What each of the scripts beside this one is made of: checks by name, each of which asks the gateway something with a
client of its own, judges what the client made of the answer, and says what the client counted.

A line of JSON in is the name of a check to run; a line out says what came of it. Everything else that is printed goes
to stderr."""

import asyncio
import inspect
import json
import math
import os
import struct
import sys
import traceback
from typing import Any, Callable

URL = os.environ["GATEWAY_URL"]
KEY = os.environ["GATEWAY_KEY"]
# Its budget is zero.
SPENT_KEY = os.environ["SPENT_KEY"]
TALKS: dict[str, str] = json.loads(os.environ["TALKS"])
DRAWS: dict[str, str] = json.loads(os.environ["DRAWS"])
EMBEDS: dict[str, str] = json.loads(os.environ["EMBEDS"])
HEARS: dict[str, str] = json.loads(os.environ["HEARS"])
SPEAKS: dict[str, str] = json.loads(os.environ["SPEAKS"])
EDITS: dict[str, str] = json.loads(os.environ["EDITS"])

HELLO = "Grüße aus Oslo 🌍"
WEATHER = "What is the weather like?"
REPORT = 'They say: Rain in Oslo. Rain in R"ome.'
THOUGHT = "Hm, hm."
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


SAID = "Grüße aus Oslo. The harbour is in the west."
SOUND = bytes((i * 31 + (i >> 7)) & 255 for i in range(20_000))


def wav(seconds: float) -> bytes:
    """A tone, in as many samples as there are bytes."""
    rate = 8_000
    size = round(seconds * rate)
    head = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + size, b"WAVEfmt ", 16, 1, 1, rate, rate, 1, 8, b"data", size)
    return head + b"\x7f" * size


def rain(city: str) -> str:
    return f"Rain in {city}."


def vector(text: str, width: int = 8) -> list[float]:
    """What the models behind the gateway make of a text, in 32 bits."""
    numbers = [math.sin((i + 1) * (len(text) + 1)) for i in range(width)]
    return list(struct.unpack(f"<{width}f", struct.pack(f"<{width}f", *numbers)))


class Case:
    """One check at work: which model it asks, the headers that name it in the ledger, and what its client counted."""

    def __init__(self, name: str, model: str) -> None:
        self.name = name
        self.model = model
        self.headers = {"x-check": name}
        self.counts: list[dict[str, int]] = []

    def count(self, *, input: int, output: int, **more: int | None) -> None:
        known = {name: count for name, count in more.items() if count is not None}
        self.counts.append({"input": input, "output": output, **known})


CHECKS: dict[str, tuple[Callable[[Case], Any], str]] = {}


def check(models: dict[str, str] = TALKS) -> Callable[[Callable[[Case], Any]], Callable[[Case], Any]]:
    """Asked of every one of these models."""

    def add(run: Callable[[Case], Any]) -> Callable[[Case], Any]:
        for provider, model in models.items():
            CHECKS[f"{run.__name__.replace('_', ' ')} on {provider}"] = (run, model)
        return run

    return add


def same(got: Any, due: Any) -> None:
    assert got == due, f"{got!r} is not {due!r}"


def serve() -> None:
    # Output of libraries must not appear between the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(line: Any) -> None:
        print(json.dumps(line), file=out, flush=True)

    tell({"checks": list(CHECKS)})
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in sys.stdin:
        name = json.loads(line)
        run, model = CHECKS[name]
        case = Case(f"{os.environ['CLIENT']}: {name}", model)
        try:
            result = run(case)
            if inspect.isawaitable(result):
                loop.run_until_complete(result)
            tell({"counts": case.counts})
        except Exception as error:
            traceback.print_exc()
            tell({"why": f"{type(error).__name__}: {error}"})
