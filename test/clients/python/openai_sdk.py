"""OpenAI's own SDK, its strict helpers among it: `.stream()` and `.parse()` raise on what the plain calls let pass."""

import base64
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from kit import (
    DOT,
    DRAWS,
    EDITS,
    EMBEDS,
    HEARS,
    HELLO,
    KEY,
    REPORT,
    SAID,
    SCHEMA,
    SOUND,
    SPEAKS,
    THOUGHT,
    URL,
    WEATHER,
    Case,
    check,
    rain,
    same,
    serve,
    vector,
    wav,
)
from openai import AsyncOpenAI, AzureOpenAI, NotFoundError, OpenAI
from pydantic import BaseModel


class Place(BaseModel):
    city: str


def client(of: Case) -> OpenAI:
    return OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, default_headers=of.headers)


def asks(words: str) -> Any:
    return [{"role": "user", "content": words}]


CHAT_TOOLS: Any = [
    {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA, "strict": True}}
]
TOOLS: Any = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}]


def count(of: Case, usage: Any) -> None:
    of.count(
        input=usage.prompt_tokens,
        output=usage.completion_tokens,
        cached=usage.prompt_tokens_details.cached_tokens,
        reasoning=usage.completion_tokens_details.reasoning_tokens,
    )
    same(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)


def count_response(of: Case, usage: Any) -> None:
    of.count(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.input_tokens_details.cached_tokens,
        reasoning=usage.output_tokens_details.reasoning_tokens,
    )


@check()
def chat(of: Case) -> None:
    answer = client(of).chat.completions.create(model=of.model, messages=asks("Hello, wörld 🌍"))
    same(answer.choices[0].message.content, HELLO)
    same(answer.choices[0].finish_reason, "stop")
    same(answer.model, of.model)
    count(of, answer.usage)


@check()
def chat_streamed(of: Case) -> None:
    stream = client(of).chat.completions.create(
        model=of.model, messages=asks("Hello"), stream=True, stream_options={"include_usage": True}
    )
    said, usage, ends = "", None, []
    for chunk in stream:
        for choice in chunk.choices:
            said += choice.delta.content or ""
            ends += [choice.finish_reason] if choice.finish_reason else []
        usage = chunk.usage or usage
    same(said, HELLO)
    same(ends, ["stop"])
    count(of, usage)


@check()
def chat_stream_helper(of: Case) -> None:
    with client(of).chat.completions.stream(
        model=of.model, messages=asks("Hello"), stream_options={"include_usage": True}
    ) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    same(answer.choices[0].message.content, HELLO)
    assert {"chunk", "content.delta", "content.done"} <= kinds, kinds
    count(of, answer.usage)


@check()
async def chat_streamed_async(of: Case) -> None:
    to = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, default_headers=of.headers)
    async with to.chat.completions.stream(
        model=of.model, messages=asks("Hello"), stream_options={"include_usage": True}
    ) as stream:
        answer = await stream.get_final_completion()
    same(answer.choices[0].message.content, HELLO)
    count(of, answer.usage)


def chat_loop(of: Case, stream: bool) -> None:
    messages = asks(WEATHER)
    for _ in range(3):
        to = client(of).chat.completions
        if stream:
            with to.stream(
                model=of.model, messages=messages, tools=CHAT_TOOLS, stream_options={"include_usage": True}
            ) as events:
                for _event in events:
                    pass
                answer: Any = events.get_final_completion()
        else:
            answer = to.create(model=of.model, messages=messages, tools=CHAT_TOOLS)
        count(of, answer.usage)
        message = answer.choices[0].message
        if not message.tool_calls:
            return same(message.content, REPORT)
        same(answer.choices[0].finish_reason, "tool_calls")
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            given = rain(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": given})
    raise AssertionError("It calls and calls.")


@check()
def chat_tools(of: Case) -> None:
    chat_loop(of, False)


@check()
def chat_tools_streamed(of: Case) -> None:
    chat_loop(of, True)


@check()
def chat_parse(of: Case) -> None:
    answer = client(of).chat.completions.parse(
        model=of.model, messages=asks("Which city?"), response_format=Place
    )
    same(answer.choices[0].message.parsed, Place(city="Oslo"))
    count(of, answer.usage)


@check()
def chat_picture(of: Case) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}},
    ]
    answer = client(of).chat.completions.create(
        model=of.model, messages=[{"role": "user", "content": content}]  # type: ignore[misc,list-item]
    )
    same(answer.choices[0].message.content, "A dot.")
    count(of, answer.usage)


@check()
def responses(of: Case) -> None:
    answer = client(of).responses.create(model=of.model, input="Hello")
    same(answer.output_text, HELLO)
    same(answer.status, "completed")
    count_response(of, answer.usage)


@check()
def responses_streamed(of: Case) -> None:
    said = ""
    for event in client(of).responses.create(model=of.model, input="Hello", stream=True):
        if event.type == "response.output_text.delta":
            said += event.delta
        if event.type == "response.completed":
            same(event.response.output_text, HELLO)
            count_response(of, event.response.usage)
    same(said, HELLO)


@check()
def responses_stream_helper(of: Case) -> None:
    with client(of).responses.stream(model=of.model, input="Hello") as stream:
        for _ in stream:
            pass
        answer = stream.get_final_response()
    same(answer.output_text, HELLO)
    thoughts = [part.text for item in answer.output if item.type == "reasoning" for part in item.summary]
    assert "".join(thoughts) in ("", THOUGHT), thoughts
    count_response(of, answer.usage)


@check()
def responses_in_background(of: Case) -> None:
    asking = client(of).responses
    answer = asking.create(model=of.model, input="Hello", background=True)
    while answer.status in ("queued", "in_progress"):
        time.sleep(0.05)
        answer = asking.retrieve(answer.id)
    same(answer.status, "completed")
    same(answer.output_text, HELLO)
    count_response(of, answer.usage)


@check()
def responses_in_background_resumed(of: Case) -> None:
    asking = client(of).responses
    events: list[Any] = []
    for event in asking.create(model=of.model, input="Hello", background=True, stream=True):
        events.append(event)
        if len(events) == 2:
            break
    answer = events[0].response
    events += asking.retrieve(answer.id, stream=True, starting_after=events[-1].sequence_number)
    same([event.sequence_number for event in events], list(range(len(events))))
    said = [event.delta for event in events if event.type == "response.output_text.delta"]
    same("".join(said), HELLO)
    same(events[-1].response.id, answer.id)
    count_response(of, events[-1].response.usage)
    asking.delete(answer.id)


def responses_loop(of: Case, stream: bool) -> None:
    items: Any = asks(WEATHER)
    for _ in range(3):
        asked: Any = {
            "model": of.model,
            "input": items,
            "tools": TOOLS,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if stream:
            with client(of).responses.stream(**asked) as events:
                for _event in events:
                    pass
                answer: Any = events.get_final_response()
        else:
            answer = client(of).responses.create(**asked)
        count_response(of, answer.usage)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return same(answer.output_text, REPORT)
        # The SDK's own parsed arguments are no field of the protocol.
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        for call in calls:
            given = rain(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": given})
    raise AssertionError("It calls and calls.")


@check()
def responses_tools(of: Case) -> None:
    responses_loop(of, False)


@check()
def responses_tools_streamed(of: Case) -> None:
    responses_loop(of, True)


@check()
def responses_parse(of: Case) -> None:
    answer = client(of).responses.parse(model=of.model, input="Which city?", text_format=Place)
    same(answer.output_parsed, Place(city="Oslo"))
    count_response(of, answer.usage)


@check()
def responses_picture(of: Case) -> None:
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DOT}", "detail": "auto"},
    ]
    answer = client(of).responses.create(
        model=of.model, input=[{"role": "user", "content": content}]  # type: ignore[misc,list-item]
    )
    same(answer.output_text, "A dot.")
    count_response(of, answer.usage)


def count_picture(of: Case, usage: Any) -> None:
    """What is sold by its tokens is not counted by the piece."""
    if usage:
        of.count(input=usage.input_tokens, output=usage.output_tokens, images=0)
    else:
        of.count(input=0, output=0, images=1)


@check(DRAWS)
def images(of: Case) -> None:
    drawn = client(of).images.generate(model=of.model, prompt="A dot", n=1)
    assert drawn.data
    same(base64.b64decode(drawn.data[0].b64_json or ""), base64.b64decode(DOT))
    count_picture(of, drawn.usage)


@check(DRAWS)
def images_streamed(of: Case) -> None:
    events = list(client(of).images.generate(model=of.model, prompt="A dot", n=1, stream=True))
    last: Any = events[-1]
    same(last.type, "image_generation.completed")
    same(base64.b64decode(last.b64_json), base64.b64decode(DOT))
    count_picture(of, last.usage)


@check(EDITS)
def images_edited(of: Case) -> None:
    dot = ("dot.png", base64.b64decode(DOT), "image/png")
    edited = client(of).images.edit(model=of.model, prompt="Two dots", image=[dot, dot], n=1)
    assert edited.data
    same(base64.b64decode(edited.data[0].b64_json or ""), base64.b64decode(DOT))
    count_picture(of, edited.usage)


@check({"all": "mresp/gpt-image-2"})
def images_varied(of: Case) -> None:
    try:
        client(of).images.create_variation(image=("dot.png", base64.b64decode(DOT), "image/png"))
    except NotFoundError as error:
        assert "/v1/images/edits" in str(error), error
        return
    raise AssertionError("There are variations.")


def azure(of: Case, **more: Any) -> AzureOpenAI:
    return AzureOpenAI(
        api_key=KEY,
        api_version="2025-04-01-preview",
        azure_endpoint=URL,
        max_retries=0,
        default_headers=of.headers,
        **more,
    )


@check()
def azure_chat(of: Case) -> None:
    answer = azure(of).chat.completions.create(model=of.model, messages=asks("Hello"))
    same(answer.choices[0].message.content, HELLO)
    assert answer.usage
    count(of, answer.usage)


@check(EMBEDS)
def azure_embeddings(of: Case) -> None:
    answer = azure(of, azure_deployment=of.model).embeddings.create(model=of.model, input="Grüße")
    same(answer.data[0].embedding, vector("Grüße"))
    of.count(input=answer.usage.prompt_tokens, output=0)


@check({"all": ""})
def models(of: Case) -> None:
    listed = {model.id for model in client(of).models.list()}
    for model in DRAWS.values():
        assert model in listed, f"{model} is not in {sorted(listed)}"


@check(EMBEDS)
def embeddings(of: Case) -> None:
    texts = ["A harbour at dusk", "Grüße"]
    for more in ({}, {"encoding_format": "float"}, {"dimensions": 4}):
        answer = client(of).embeddings.create(model=of.model, input=texts, **more)
        width = more.get("dimensions", 8)
        same([row.embedding for row in answer.data], [vector(text, width) for text in texts])
        of.count(input=answer.usage.prompt_tokens, output=0)


@check({"mresp": EMBEDS["mresp"]})
def embeddings_of_ids(of: Case) -> None:
    answer = client(of).embeddings.create(model=of.model, input=[[32, 9], [17]])
    same(len(answer.data), 2)
    same(answer.usage.prompt_tokens, 3)
    of.count(input=3, output=0)


def files() -> list[Any]:
    """A path, an open file, bytes with a name, and a name with a type: as people hand them over."""
    path = Path(tempfile.mkdtemp()) / "harbour.wav"
    path.write_bytes(wav(3.25))
    return [path, path.open("rb"), ("x.wav", wav(3.25)), ("x.wav", io.BytesIO(wav(3.25)), "audio/wav")]


@check(HEARS)
def transcriptions(of: Case) -> None:
    for file in files():
        same(client(of).audio.transcriptions.create(model=of.model, file=file).text, SAID)


@check(HEARS)
def transcriptions_in_every_form(of: Case) -> None:
    for form in ("json", "text", "srt", "verbose_json", "vtt"):
        answer: Any = client(of).audio.transcriptions.create(
            model=of.model, file=files()[2], response_format=form, timestamp_granularities=["segment"]
        )
        if form in ("json", "verbose_json"):
            same(answer.text, SAID)
        else:
            assert "The harbour is in the west." in answer, answer
        if form == "verbose_json":
            same([segment.start for segment in answer.segments], [0, 1.5])
            assert all(segment.avg_logprob is not None for segment in answer.segments)


@check(HEARS)
def transcriptions_streamed(of: Case) -> None:
    events: list[Any] = list(
        client(of).audio.transcriptions.create(model=of.model, file=files()[2], stream=True)
    )
    same("".join(event.delta for event in events if event.type == "transcript.text.delta"), SAID)
    same(events[-1].type, "transcript.text.done")
    same(events[-1].text, SAID)


@check(HEARS)
def translations(of: Case) -> None:
    same(client(of).audio.translations.create(model=of.model, file=files()[2]).text, SAID)


@check(HEARS)
async def transcriptions_without_waiting(of: Case) -> None:
    async with AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, default_headers=of.headers) as asking:
        same((await asking.audio.transcriptions.create(model=of.model, file=files()[2])).text, SAID)


@check(SPEAKS)
def speech(of: Case) -> None:
    for form in ("mp3", "wav", "pcm"):
        answer = client(of).audio.speech.create(
            model=of.model, input="Grüße 🌍", voice="alloy", response_format=form
        )
        same(answer.content, SOUND)


@check(SPEAKS)
def speech_as_it_comes(of: Case) -> None:
    asking = client(of).audio.speech.with_streaming_response
    with asking.create(model=of.model, input="Grüße 🌍", voice="alloy") as answer:
        same(answer.headers["content-type"], "audio/mpeg")
        same(b"".join(answer.iter_bytes(1_000)), SOUND)


@check({"mresp": SPEAKS["mresp"]})
def speech_in_events(of: Case) -> None:
    asking = client(of).audio.speech.with_streaming_response
    with asking.create(model=of.model, input="Grüße 🌍", voice="alloy", stream_format="sse") as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    sound = [base64.b64decode(event["audio"]) for event in events if event["type"].endswith("delta")]
    same(b"".join(sound), SOUND)
    of.count(input=events[-1]["usage"]["input_tokens"], output=events[-1]["usage"]["output_tokens"])


serve()
