"""Runs one prompt through an agent of the OpenAI Agents SDK, with a tool that writes a file."""

import asyncio
import os
import sys
from pathlib import Path

import openai
from agents import (
    Agent,
    Runner,
    function_tool,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)


@function_tool
def write_file(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, encoding="utf-8")
    return "written"


async def main():
    set_tracing_disabled(True)
    set_default_openai_api("responses")
    set_default_openai_client(
        openai.AsyncOpenAI(
            base_url=f"{os.environ['GATEWAY_URL']}/v1",
            api_key=os.environ["GATEWAY_KEY"],
            max_retries=0,
        )
    )
    from agents import OpenAIResponsesModel
    from agents.models._openai_shared import get_default_openai_client

    model = OpenAIResponsesModel(os.environ["MODEL"], get_default_openai_client())
    agent = Agent(name="writer", instructions="You write files.", model=model, tools=[write_file])
    if os.environ["STREAM"] != "true":
        print((await Runner.run(agent, os.environ["PROMPT"])).final_output)
        return
    result = Runner.run_streamed(agent, os.environ["PROMPT"])
    text = ""
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    if text != result.final_output:
        raise SystemExit(f"the events add up to another text: {text}")
    print(result.final_output)


try:
    asyncio.run(main())
except openai.APIError as error:
    sys.exit(str(error))
