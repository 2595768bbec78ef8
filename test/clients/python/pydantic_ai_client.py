"""Pydantic AI's agents, over each of its ways to a model: chat completions, responses, messages."""

import base64
from typing import Any

from anthropic import AsyncAnthropic
from kit import DOT, HELLO, KEY, REPORT, URL, WEATHER, Case, check, rain, same, serve
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, ToolOutput
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Place(BaseModel):
    city: str


def openai(of: Case) -> OpenAIProvider:
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, default_headers=of.headers)
    return OpenAIProvider(openai_client=client)


def chat(of: Case) -> Model:
    return OpenAIChatModel(of.model, provider=openai(of))


def responses(of: Case) -> Model:
    return OpenAIResponsesModel(of.model, provider=openai(of))


def messages(of: Case) -> Model:
    client = AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0, default_headers=of.headers)
    return AnthropicModel(of.model, provider=AnthropicProvider(anthropic_client=client))


def count(of: Case, usage: Any) -> None:
    of.count(input=usage.input_tokens, output=usage.output_tokens, cached=usage.cache_read_tokens)


async def runs(of: Case, model: Model) -> None:
    result = await Agent(model, instructions="Be brief.").run("Hello, wörld 🌍")
    same(result.output, HELLO)
    count(of, used(result))


def used(result: Any) -> Any:
    return result.usage() if callable(result.usage) else result.usage


async def streams(of: Case, model: Model) -> None:
    async with Agent(model).run_stream("Hello") as result:
        same(await result.get_output(), HELLO)
        count(of, used(result))


def weathered(model: Model) -> Agent[None, str]:
    agent = Agent(model)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city"""
        return rain(city)

    return agent


async def uses_tools(of: Case, model: Model) -> None:
    result = await weathered(model).run(WEATHER)
    same(result.output, REPORT)
    count(of, used(result))


async def streams_tools(of: Case, model: Model) -> None:
    async with weathered(model).iter(WEATHER) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
        result: Any = run.result
    same(result.output, REPORT)
    count(of, used(result))


async def shapes(of: Case, model: Model, output: Any) -> None:
    result = await Agent(model, output_type=output).run("Which city?")
    same(result.output, Place(city="Oslo"))
    count(of, used(result))


async def looks(of: Case, model: Model) -> None:
    picture = BinaryContent(data=base64.b64decode(DOT), media_type="image/png")
    result = await Agent(model).run(["What is this?", picture])
    same(result.output, "A dot.")
    count(of, used(result))


def all_of(wire: str, to: Any) -> None:
    """The same of each wire."""

    def add(name: str, run: Any) -> None:
        async def one(of: Case) -> None:
            await run(of, to(of))

        one.__name__ = f"{wire}_{name}"
        check()(one)

    add("run", runs)
    add("streamed", streams)
    add("tools", uses_tools)
    add("tools_streamed", streams_tools)
    add("shape_by_tool", lambda of, model: shapes(of, model, ToolOutput(Place, name="final_result")))
    add("picture", looks)
    # It requests a schema from an Anthropic model only if it knows the name.
    if wire != "messages":
        add("shape_by_schema", lambda of, model: shapes(of, model, NativeOutput(Place)))


all_of("chat", chat)
all_of("responses", responses)
all_of("messages", messages)
serve()
