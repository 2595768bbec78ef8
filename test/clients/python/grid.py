"""Each operation as OpenAI's own SDK is asked for it. A line of JSON in is a question, or the number of one that is given up; a
line out says what it came to: the status of a refusal, or that it was answered."""

import asyncio
import base64
import json
import os
import sys
from typing import Any, AsyncIterator, Awaitable, Callable

from openai import APIStatusError, AsyncOpenAI

Asked = dict[str, Any]
Ask = Callable[[AsyncOpenAI, Asked], Awaitable[Any]]

DOT = os.environ["PICTURE"]
# No file states more seconds than its bytes can contain, at 750 bytes per second.
HEARD_BYTES = 31 * 750


async def heard(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        pass


def talk(of: Asked) -> Any:
    return {"model": of["model"], "messages": [{"role": "user", "content": of["prompt"]}]}


def text(of: Asked) -> Any:
    return {"model": of["model"], "prompt": of["prompt"]}


def sound(of: Asked) -> Any:
    return {"model": of["model"], "file": ("a.wav", of["prompt"].ljust(HEARD_BYTES).encode())}


def picture(of: Asked) -> Any:
    return {**text(of), "image": ("one.png", base64.b64decode(DOT), "image/png")}


def spoken(of: Asked) -> Any:
    return {"model": of["model"], "input": of["prompt"], "voice": "alloy"}


async def streamed(asked: Awaitable[AsyncIterator[Any]]) -> None:
    await heard(await asked)


async def aloud(to: AsyncOpenAI, of: Asked) -> None:
    async with to.audio.speech.with_streaming_response.create(**spoken(of)) as answer:
        await heard(answer.iter_bytes(100))


async def ranked(to: AsyncOpenAI, of: Asked) -> None:
    # This SDK has no method for it.
    body = {"model": of["model"], "query": of["prompt"], "documents": ["one", "two"]}
    await to.post("/rerank", cast_to=object, body=body)


WAYS: dict[str, dict[str, Ask]] = {
    "chat": {
        "whole": lambda to, of: to.chat.completions.create(**talk(of)),
        "streamed": lambda to, of: streamed(to.chat.completions.create(**talk(of), stream=True)),
    },
    "completions": {
        "whole": lambda to, of: to.completions.create(**text(of)),
        "streamed": lambda to, of: streamed(to.completions.create(**text(of), stream=True)),
    },
    "embeddings": {
        "whole": lambda to, of: to.embeddings.create(model=of["model"], input=of["prompt"]),
    },
    "rerank": {"whole": ranked},
    "moderations": {
        "whole": lambda to, of: to.moderations.create(model=of["model"], input=of["prompt"]),
    },
    "speech": {
        "whole": lambda to, of: to.audio.speech.create(**spoken(of)),
        "streamed": aloud,
    },
    "transcriptions": {
        "whole": lambda to, of: to.audio.transcriptions.create(**sound(of)),
        "streamed": lambda to, of: streamed(to.audio.transcriptions.create(**sound(of), stream=True)),
    },
    "generations": {
        "whole": lambda to, of: to.images.generate(**text(of)),
        "streamed": lambda to, of: streamed(to.images.generate(**text(of), stream=True)),
    },
    "edits": {
        "whole": lambda to, of: to.images.edit(**picture(of)),
        "streamed": lambda to, of: streamed(to.images.edit(**picture(of), stream=True)),
    },
}


# Connections are shared, and each request states its sender.
ASKING = AsyncOpenAI(base_url="http://127.0.0.1", api_key="none", max_retries=0)


async def came_to(of: Asked) -> Any:
    to = ASKING.with_options(
        base_url=f"{of['url']}/v1", api_key=of["key"], default_headers=of["headers"]
    )
    try:
        await WAYS[of["operation"]][of["way"]](to, of)
        return "answered"
    except APIStatusError as error:
        return error.status_code
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def serve() -> None:
    # Output of libraries must not appear between the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    running: dict[int, asyncio.Task[None]] = {}

    def tell(said: Any) -> None:
        print(json.dumps(said), file=out, flush=True)

    async def answer(number: int, of: Asked) -> None:
        try:
            tell({"number": number, "status": await came_to(of)})
        except asyncio.CancelledError:
            tell({"number": number, "status": "given up"})

    tell({operation: list(ways) for operation, ways in WAYS.items()})
    lines = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    while line := await lines.readline():
        said = json.loads(line)
        if "asks" in said:
            running[said["number"]] = asyncio.create_task(answer(said["number"], said["asks"]))
        else:
            running[said["number"]].cancel()


asyncio.run(serve())
