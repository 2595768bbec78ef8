"""Runs one prompt through LiteLLM's SDK, with a tool that writes a file."""

import json
import os
import sys
from pathlib import Path

import litellm

STREAM = os.environ["STREAM"] == "true"
TOOL = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Write a text file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    },
}


def complete(messages):
    answer = litellm.completion(
        model=f"openai/{os.environ['MODEL']}",
        api_base=f"{os.environ['GATEWAY_URL']}/v1",
        api_key=os.environ["GATEWAY_KEY"],
        messages=messages,
        tools=[TOOL],
        stream=STREAM,
        max_retries=0,
        **({"stream_options": {"include_usage": True}} if STREAM else {}),
    )
    return litellm.stream_chunk_builder(list(answer)) if STREAM else answer


def main():
    messages = [{"role": "user", "content": os.environ["PROMPT"]}]
    for _ in range(4):
        message = complete(messages).choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            given = json.loads(call.function.arguments)
            Path(given["path"]).write_text(given["text"], encoding="utf-8")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "written"})


try:
    main()
except litellm.exceptions.APIError as error:
    sys.exit(str(error))
except litellm.exceptions.BadRequestError as error:
    sys.exit(str(error))
