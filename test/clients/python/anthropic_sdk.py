"""Anthropic's own SDK, newest line: key as a bearer, threads in its tool runner."""

from typing import Any

from anthropic import Anthropic, AsyncAnthropic, beta_tool
from kit import DOT, HELLO, KEY, REPORT, SCHEMA, THOUGHT, URL, WEATHER, Case, check, rain, same, serve


def client(of: Case) -> Anthropic:
    return Anthropic(base_url=URL, api_key=KEY, max_retries=0, default_headers=of.headers)


TOOLS: Any = [{"name": "get_weather", "description": "The weather in a city", "input_schema": SCHEMA}]


@beta_tool
def get_weather(city: str) -> str:
    """The weather in a city"""
    return rain(city)


def asks(of: Case, content: Any) -> Any:
    return {"model": of.model, "max_tokens": 1000, "messages": [{"role": "user", "content": content}]}


def count(of: Case, usage: Any) -> None:
    cached = usage.cache_read_input_tokens or 0
    of.count(input=usage.input_tokens + cached, output=usage.output_tokens, cached=cached)


def said(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@check()
def messages(of: Case) -> None:
    answer = client(of).messages.create(**asks(of, "Hello, wörld 🌍"))
    same(said(answer), HELLO)
    same([block.thinking for block in answer.content if block.type == "thinking"], [THOUGHT])
    same(answer.stop_reason, "end_turn")
    same(answer.model, of.model)
    count(of, answer.usage)


@check()
def messages_streamed(of: Case) -> None:
    with client(of).messages.stream(**asks(of, "Hello")) as stream:
        pieces = list(stream.text_stream)
        answer = stream.get_final_message()
    same("".join(pieces), HELLO)
    same(said(answer), HELLO)
    count(of, answer.usage)


@check()
async def messages_streamed_async(of: Case) -> None:
    to = AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0, default_headers=of.headers)
    async with to.messages.stream(**asks(of, "Hello")) as stream:
        answer = await stream.get_final_message()
    same(said(answer), HELLO)
    count(of, answer.usage)


def loop(of: Case, stream: bool) -> None:
    asked = {**asks(of, WEATHER), "tools": TOOLS}
    for _ in range(3):
        if stream:
            with client(of).messages.stream(**asked) as events:
                answer: Any = events.get_final_message()
        else:
            answer = client(of).messages.create(**asked)
        count(of, answer.usage)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return same(said(answer), REPORT)
        same(answer.stop_reason, "tool_use")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": rain(**call.input)} for call in calls
        ]
        asked["messages"] += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": results},
        ]
    raise AssertionError("It calls and calls.")


@check()
def messages_tools(of: Case) -> None:
    loop(of, False)


@check()
def messages_tools_streamed(of: Case) -> None:
    loop(of, True)


@check()
def tool_runner(of: Case) -> None:
    answers = list(client(of).beta.messages.tool_runner(**asks(of, WEATHER), tools=[get_weather]))
    for answer in answers:
        count(of, answer.usage)
    same(said(answers[-1]), REPORT)


@check()
def tool_runner_streamed(of: Case) -> None:
    last: Any = None
    for turn in client(of).beta.messages.tool_runner(**asks(of, WEATHER), tools=[get_weather], stream=True):
        last = turn.get_final_message()
        count(of, last.usage)
    same(said(last), REPORT)


@check()
def messages_picture(of: Case) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": DOT}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is this?"}]
    answer = client(of).messages.create(**asks(of, content))
    same(said(answer), "A dot.")
    count(of, answer.usage)


@check()
def count_tokens(of: Case) -> None:
    asked = asks(of, "Hello")
    counted = client(of).messages.count_tokens(model=of.model, messages=asked["messages"])
    assert counted.input_tokens > 0


@check({"all": ""})
def models(of: Case) -> None:
    assert len([model.id for model in client(of).models.list()]) >= 4


serve()
