"""Answers of every shape, as our wires write them, read by the models that OpenAI's and Anthropic's SDKs publish: strictly, not
as the SDKs do it themselves, which take what they are given; and then by their own accumulators, which raise on less."""

import json
import os
from typing import Any, Callable, get_args

import httpx
import httpx2
from anthropic import Anthropic
from anthropic.types import Message, RawMessageStreamEvent
from kit import CHECKS, Case, check, same, serve
from openai import ContentFilterFinishReasonError, LengthFinishReasonError, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

with open(os.environ["CORPUS"]) as lines:
    CORPUS: list[dict[str, Any]] = [json.loads(line) for line in lines]

def by_type(union: Any) -> dict[str, TypeAdapter[Any]]:
    """One model for each type of event, so that what is wrong is told of that one alone."""
    (members, *_) = get_args(union)
    return {
        name: TypeAdapter(model)
        for model in get_args(members)
        for name in get_args(model.model_fields["type"].annotation)
    }


MESSAGE_EVENTS = by_type(RawMessageStreamEvent)
RESPONSE_EVENTS = by_type(ResponseStreamEvent)
CHUNK: TypeAdapter[Any] = TypeAdapter(ChatCompletionChunk)
EVENT: dict[str, Callable[[Any], TypeAdapter[Any]]] = {
    "chat-completions": lambda _: CHUNK,
    "messages": lambda event: MESSAGE_EVENTS[event["type"]],
    "responses": lambda event: RESPONSE_EVENTS[event["type"]],
}
ANSWER: dict[str, TypeAdapter[Any]] = {
    "chat-completions": TypeAdapter(ChatCompletion),
    "messages": TypeAdapter(Message),
    "responses": TypeAdapter(Response),
}
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def events(text: str) -> list[Any]:
    data = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


def openai(text: str) -> OpenAI:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())

    return OpenAI(api_key="k", http_client=httpx.Client(transport=httpx.MockTransport(answer)))


def anthropic(text: str) -> Anthropic:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())

    return Anthropic(api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def read_chat(text: str) -> tuple[str, list[str]]:
    with openai(text).chat.completions.stream(**ASKED) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    return message.content or "", [call.function.name for call in message.tool_calls or []]


def read_messages(text: str) -> tuple[str, list[str]]:
    with anthropic(text).messages.stream(**ASKED, max_tokens=9) as stream:
        content: Any = stream.get_final_message().content
    return (
        "".join(block.text for block in content if block.type == "text"),
        [block.name for block in content if block.type == "tool_use"],
    )


def read_responses(text: str) -> tuple[str, list[str]]:
    response: Any = None
    with openai(text).responses.stream(model="m", input="Hi") as stream:
        for event in stream:
            if event.type in ("response.completed", "response.incomplete"):
                response = event.response
    calls = [item.name for item in response.output if item.type in ("function_call", "custom_tool_call")]
    return response.output_text, calls


READ: dict[str, Callable[[str], tuple[str, list[str]]]] = {
    "chat-completions": read_chat,
    "messages": read_messages,
    "responses": read_responses,
}


def each(wire: str, judge: Callable[[dict[str, Any]], None]) -> None:
    found = [one for one in CORPUS if one["wire"] == wire]
    assert found, f"Nothing of {wire} was written."
    for one in found:
        try:
            judge(one)
        except Exception as error:
            raise AssertionError(f"{error}\n{json.dumps(one)}") from error


def strictly(adapter: TypeAdapter[Any], value: Any) -> None:
    adapter.validate_json(json.dumps(value), strict=True)


WIRES = {wire: wire for wire in EVENT}


@check(WIRES)
def every_chunk(of: Case) -> None:
    each(of.model, lambda one: [strictly(EVENT[of.model](e), e) for e in events(one["stream"])] and None)


@check(WIRES)
def every_answer(of: Case) -> None:
    each(of.model, lambda one: strictly(ANSWER[of.model], one["whole"]))


@check(WIRES)
def every_stream(of: Case) -> None:
    def judge(one: dict[str, Any]) -> None:
        try:
            text, calls = READ[of.model](one["stream"])
        except (ContentFilterFinishReasonError, LengthFinishReasonError):
            # It was truncated, which is the expected result.
            return
        same(calls, one["calls"])
        if one["text"] is not None:
            same(text, one["text"])

    each(of.model, judge)


assert CHECKS
serve()
