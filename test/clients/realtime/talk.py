"""Holds the conversation of drivers.ts with Python's official clients. Prints what it heard as JSON.

Arguments: the client (openai or google), base URL, key, model.
"""

import asyncio
import base64
import json
import sys

heard = {"texts": [], "audioBytes": [], "input": 0, "output": 0, "errors": []}


async def talk_openai(url: str, key: str, model: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key=key, base_url=f"{url}/v1")
    async with client.realtime.connect(model=model) as connection:
        await connection.session.update(
            session={"type": "realtime", "instructions": "Be kind."}
        )
        size = 0
        async for event in connection:
            if event.type == "error":
                heard["errors"].append(event.error.message)
                return
            if event.type == "session.updated":
                content = [{"type": "input_text", "text": "Hello"}]
                await connection.conversation.item.create(
                    item={"type": "message", "role": "user", "content": content}
                )
                await connection.response.create()
            elif event.type == "response.output_audio.delta":
                size += len(base64.b64decode(event.delta))
            elif event.type == "response.output_audio_transcript.done":
                heard["texts"].append(event.transcript)
            elif event.type == "response.done":
                heard["audioBytes"].append(size)
                size = 0
                heard["input"] += event.response.usage.input_tokens
                heard["output"] += event.response.usage.output_tokens
                if len(heard["audioBytes"]) == 2:
                    return
                # A second of speech, and 300 ms of silence.
                for byte, length in ((7, 48_000), (0, 14_400)):
                    audio = base64.b64encode(bytes([byte]) * length).decode()
                    await connection.input_audio_buffer.append(audio=audio)


async def talk_google(url: str, key: str, model: str) -> None:
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=key, http_options={"base_url": url})
    # The client insists on TLS.
    client._api_client._websocket_ssl_ctx = {}
    client._api_client._websocket_base_url = lambda *_: url.replace("http", "ws", 1)
    config = {"response_modalities": ["AUDIO"], "system_instruction": "Be kind."}
    async with client.aio.live.connect(model=model, config=config) as session:
        turn = {"role": "user", "parts": [{"text": "Hello"}]}
        await session.send_client_content(turns=turn, turn_complete=True)
        for n in range(2):
            size = 0
            async for message in session.receive():
                size += len(message.data or b"")
                if usage := message.usage_metadata:
                    heard["input"] += usage.prompt_token_count or 0
                    heard["output"] += usage.response_token_count or 0
            heard["audioBytes"].append(size)
            if n == 0:
                for byte in (7, 0):
                    audio = types.Blob(
                        data=bytes([byte]) * 32_000, mime_type="audio/pcm;rate=16000"
                    )
                    await session.send_realtime_input(audio=audio)


async def main() -> None:
    client, url, key, model = sys.argv[1:]
    talk = {"openai": talk_openai, "google": talk_google}[client]
    try:
        await asyncio.wait_for(talk(url, key, model), 120)
    except Exception as error:
        heard["errors"].append(repr(error))
    print(json.dumps(heard))


asyncio.run(main())
