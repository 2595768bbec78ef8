"""LangChain's ChatOpenAI, on chat completions and on responses: invoked, streamed, with tools, with a shape, with a picture."""

from typing import Any

from kit import DOT, EMBEDS, HELLO, KEY, REPORT, URL, WEATHER, Case, check, rain, same, serve, vector
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class Place(BaseModel):
    """A city"""

    city: str


@tool
def get_weather(city: str) -> str:
    """The weather in a city"""
    return rain(city)


def llm(of: Case, responses: bool) -> ChatOpenAI:
    return ChatOpenAI(
        model=of.model,
        base_url=f"{URL}/v1",
        api_key=KEY,  # type: ignore[arg-type]
        max_retries=0,
        default_headers=of.headers,
        use_responses_api=responses,
        stream_usage=True,
    )


def count(of: Case, message: AIMessage) -> None:
    usage: Any = message.usage_metadata
    of.count(
        input=usage["input_tokens"],
        output=usage["output_tokens"],
        cached=usage["input_token_details"].get("cache_read"),
        reasoning=usage["output_token_details"].get("reasoning"),
    )


def words(message: AIMessage) -> str:
    return str(message.text)


def joined(pieces: Any) -> Any:
    whole = None
    for piece in pieces:
        whole = piece if whole is None else whole + piece
    return whole


def invoked(of: Case, responses: bool) -> None:
    answer = llm(of, responses).invoke([SystemMessage("Be brief."), HumanMessage("Hello, wörld 🌍")])
    same(words(answer), HELLO)
    count(of, answer)


def streamed(of: Case, responses: bool) -> None:
    answer = joined(llm(of, responses).stream("Hello"))
    same(words(answer), HELLO)
    count(of, answer)


def loop(of: Case, responses: bool, stream: bool) -> None:
    bound = llm(of, responses).bind_tools([get_weather])
    messages: list[Any] = [HumanMessage(WEATHER)]
    for _ in range(3):
        answer = joined(bound.stream(messages)) if stream else bound.invoke(messages)
        count(of, answer)
        if not answer.tool_calls:
            return same(words(answer), REPORT)
        messages.append(answer)
        for call in answer.tool_calls:
            messages.append(ToolMessage(rain(**call["args"]), tool_call_id=call["id"]))
    raise AssertionError("It calls and calls.")


def shaped(of: Case, responses: bool, method: Any) -> None:
    asked = llm(of, responses).with_structured_output(Place, method=method, include_raw=True)
    answer: Any = asked.invoke("Which city?")
    same(answer["parsing_error"], None)
    same(answer["parsed"], Place(city="Oslo"))
    count(of, answer["raw"])


def pictured(of: Case, responses: bool) -> None:
    picture = {"type": "image", "base64": DOT, "mime_type": "image/png"}
    answer = llm(of, responses).invoke([HumanMessage([{"type": "text", "text": "What is this?"}, picture])])  # type: ignore[list-item]
    same(words(answer), "A dot.")
    count(of, answer)


@check()
def chat(of: Case) -> None:
    invoked(of, False)


@check()
def chat_streamed(of: Case) -> None:
    streamed(of, False)


@check()
async def chat_streamed_async(of: Case) -> None:
    answer = joined([piece async for piece in llm(of, False).astream("Hello")])
    same(words(answer), HELLO)
    count(of, answer)


@check()
def chat_tools(of: Case) -> None:
    loop(of, False, False)


@check()
def chat_tools_streamed(of: Case) -> None:
    loop(of, False, True)


@check()
def chat_shape(of: Case) -> None:
    shaped(of, False, "json_schema")


@check()
def chat_shape_by_tool(of: Case) -> None:
    shaped(of, False, "function_calling")


@check()
def chat_picture(of: Case) -> None:
    pictured(of, False)


@check()
def responses(of: Case) -> None:
    invoked(of, True)


@check()
def responses_streamed(of: Case) -> None:
    streamed(of, True)


@check()
def responses_tools(of: Case) -> None:
    loop(of, True, False)


@check()
def responses_tools_streamed(of: Case) -> None:
    loop(of, True, True)


@check()
def responses_shape(of: Case) -> None:
    shaped(of, True, "json_schema")


@check()
def responses_picture(of: Case) -> None:
    pictured(of, True)


@check(EMBEDS)
def embeddings(of: Case) -> None:
    made = OpenAIEmbeddings(
        model=of.model,
        base_url=f"{URL}/v1",
        api_key=KEY,  # type: ignore[arg-type]
        max_retries=0,
        default_headers=of.headers,
        # Otherwise it downloads a tokenizer from the internet.
        check_embedding_ctx_length=False,
    )
    texts = ["A harbour at dusk", "Rain"]
    same(made.embed_documents(texts), [vector(text) for text in texts])
    same(made.embed_query(texts[0]), vector(texts[0]))


serve()
