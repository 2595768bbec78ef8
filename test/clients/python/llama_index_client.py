"""LlamaIndex, as it reaches whatever is like OpenAI: chat completions and responses."""

import base64
from typing import Any

from kit import DOT, HELLO, KEY, REPORT, URL, WEATHER, Case, check, rain, same, serve
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses


def get_weather(city: str) -> str:
    """The weather in a city"""
    return rain(city)


TOOL = FunctionTool.from_defaults(get_weather)


def llm(of: Case) -> OpenAILike:
    return OpenAILike(
        model=of.model,
        api_base=f"{URL}/v1",
        api_key=KEY,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        default_headers=of.headers,
        additional_kwargs={"stream_options": {"include_usage": True}},
    )


def whole(of: Case) -> OpenAILike:
    asking = llm(of)
    asking.additional_kwargs = {}
    return asking


def responding(of: Case) -> OpenAILikeResponses:
    return OpenAILikeResponses(
        model=of.model,
        api_base=f"{URL}/v1",
        api_key=KEY,
        is_function_calling_model=True,
        max_retries=0,
        default_headers=of.headers,
        context_window=100_000,
        track_previous_responses=False,
        store=False,
    )


def count(of: Case, answer: Any) -> None:
    raw = answer.raw
    # The last event of a responses stream.
    raw = getattr(raw, "response", raw)
    usage = raw["usage"] if isinstance(raw, dict) else raw.usage
    if hasattr(usage, "prompt_tokens"):
        of.count(
            input=usage.prompt_tokens,
            output=usage.completion_tokens,
            cached=usage.prompt_tokens_details.cached_tokens,
            reasoning=usage.completion_tokens_details.reasoning_tokens,
        )
    else:
        of.count(
            input=usage.input_tokens,
            output=usage.output_tokens,
            cached=usage.input_tokens_details.cached_tokens,
            reasoning=usage.output_tokens_details.reasoning_tokens,
        )


def asks(words: str) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.USER, content=words)]


def last(stream: Any) -> Any:
    answer = None
    for answer in stream:
        pass
    return answer


def loop(of: Case, to: Any, stream: bool) -> None:
    messages = asks(WEATHER)
    for _ in range(3):
        how = to.stream_chat_with_tools if stream else to.chat_with_tools
        asked: dict[str, Any] = {"chat_history": messages, "allow_parallel_tool_calls": True}
        got = how([TOOL], **asked)
        answer = last(got) if stream else got
        count(of, answer)
        calls = to.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        if not calls:
            return same(answer.message.content, REPORT)
        messages.append(answer.message)
        for call in calls:
            messages.append(
                ChatMessage(
                    role=MessageRole.TOOL,
                    content=rain(**call.tool_kwargs),
                    additional_kwargs={"tool_call_id": call.tool_id},
                )
            )
    raise AssertionError("It calls and calls.")


@check()
def chat(of: Case) -> None:
    answer = whole(of).chat(asks("Hello, wörld 🌍"))
    same(answer.message.content, HELLO)
    count(of, answer)


@check()
def chat_streamed(of: Case) -> None:
    answer = last(llm(of).stream_chat(asks("Hello")))
    same(answer.message.content, HELLO)
    count(of, answer)


@check()
async def chat_streamed_async(of: Case) -> None:
    answer: Any = None
    async for answer in await llm(of).astream_chat(asks("Hello")):
        pass
    same(answer.message.content, HELLO)
    count(of, answer)


@check()
def complete(of: Case) -> None:
    answer = whole(of).complete("Hello")
    same(answer.text, HELLO)
    count(of, answer)


@check()
def chat_tools(of: Case) -> None:
    loop(of, whole(of), False)


@check()
def chat_tools_streamed(of: Case) -> None:
    loop(of, llm(of), True)


@check()
def chat_picture(of: Case) -> None:
    picture = ImageBlock(image=base64.b64decode(DOT), image_mimetype="image/png")
    message = ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="What is this?"), picture])
    answer = whole(of).chat([message])
    same(answer.message.content, "A dot.")
    count(of, answer)


@check()
def responses(of: Case) -> None:
    answer = responding(of).chat(asks("Hello"))
    same(answer.message.content, HELLO)
    count(of, answer)


@check()
def responses_streamed(of: Case) -> None:
    answer = last(responding(of).stream_chat(asks("Hello")))
    same(answer.message.content, HELLO)
    count(of, answer)


@check()
def responses_tools(of: Case) -> None:
    loop(of, responding(of), False)


@check()
def responses_tools_streamed(of: Case) -> None:
    loop(of, responding(of), True)


serve()
