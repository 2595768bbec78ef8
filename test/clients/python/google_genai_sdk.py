"""Google's own SDK: it validates every chunk against its models, reads signatures as bytes, and writes them in another
alphabet when it sends them back."""

import asyncio
import base64
from typing import Any

from google import genai
from google.genai import errors, types
from kit import (
    DOT,
    EMBEDS,
    HELLO,
    KEY,
    REPORT,
    SCHEMA,
    SPENT_KEY,
    TALKS,
    THOUGHT,
    URL,
    WEATHER,
    Case,
    check,
    rain,
    same,
    serve,
    vector,
)
from pydantic import BaseModel


class Place(BaseModel):
    city: str


# An unreferenced client closes its connections.
open_clients: list[genai.Client] = []


def client(of: Case, key: str = KEY) -> genai.Client:
    made = genai.Client(
        api_key=key, http_options=types.HttpOptions(base_url=URL, headers=of.headers)
    )
    open_clients.append(made)
    return made


def count(of: Case, usage: Any) -> None:
    thoughts = usage.thoughts_token_count or 0
    of.count(
        input=usage.prompt_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )


@check()
def generate(of: Case) -> None:
    answer = client(of).models.generate_content(model=of.model, contents="Hello, wörld 🌍")
    same(answer.text, HELLO)
    same(answer.model_version, of.model)
    same(str(answer.candidates[0].finish_reason), "FinishReason.STOP")
    count(of, answer.usage_metadata)


@check()
def streamed(of: Case) -> None:
    said, last = "", None
    for chunk in client(of).models.generate_content_stream(model=of.model, contents="Hello"):
        said += chunk.text or ""
        last = chunk
    same(said, HELLO)
    count(of, last.usage_metadata)


@check()
async def streamed_async(of: Case) -> None:
    said, last = "", None
    stream = await client(of).aio.models.generate_content_stream(model=of.model, contents="Hello")
    async for chunk in stream:
        said += chunk.text or ""
        last = chunk
    same(said, HELLO)
    count(of, last.usage_metadata)


@check()
def thoughts(of: Case) -> None:
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH")
    )
    answer = client(of).models.generate_content(model=of.model, contents="Hello", config=config)
    same("".join(part.text for part in answer.parts if part.thought and part.text), THOUGHT)
    same(answer.text, HELLO)
    count(of, answer.usage_metadata)


def loop(of: Case, stream: bool) -> None:
    """As an agent does it by hand: signatures go back as bytes, ids are dropped by the helper."""
    config = types.GenerateContentConfig(
        tools=[
            types.Tool(
                function_declarations=[
                    types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
                ]
            )
        ]
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=WEATHER)])]
    for _ in range(3):
        models = client(of).models
        parts: list[types.Part] = []
        if stream:
            for chunk in models.generate_content_stream(model=of.model, contents=contents, config=config):
                parts += (chunk.candidates or [types.Candidate()])[0].content.parts or []
                usage = chunk.usage_metadata
        else:
            answer = models.generate_content(model=of.model, contents=contents, config=config)
            parts, usage = answer.candidates[0].content.parts, answer.usage_metadata
        count(of, usage)
        # The last chunk of a stream has an empty text, which is no part of the content.
        parts = [part for part in parts if part.text != "" or part.thought_signature]
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return same("".join(part.text or "" for part in parts), REPORT)
        given = [
            types.Part.from_function_response(name=call.name, response={"output": rain(**call.args)})
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=given))
    raise AssertionError("It calls and calls.")


@check()
def tools(of: Case) -> None:
    loop(of, False)


@check()
def tools_streamed(of: Case) -> None:
    loop(of, True)


@check()
def tools_called_by_itself(of: Case) -> None:
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return rain(city)

    config = types.GenerateContentConfig(tools=[get_weather])
    answer = client(of).models.generate_content(model=of.model, contents=WEATHER, config=config)
    same(answer.text, REPORT)


@check()
def schema(of: Case) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    answer = client(of).models.generate_content(model=of.model, contents="Which city?", config=config)
    same(answer.parsed, Place(city="Oslo"))
    count(of, answer.usage_metadata)


@check()
def picture(of: Case) -> None:
    dot = types.Part.from_bytes(data=base64.b64decode(DOT), mime_type="image/png")
    answer = client(of).models.generate_content(model=of.model, contents=["What is this?", dot])
    same(answer.text, "A dot.")
    count(of, answer.usage_metadata)


@check({"all": ""})
async def silence(of: Case) -> None:
    """Models that say nothing for long, all of them at once."""

    async def waited(model: str) -> str:
        stream = await client(of).aio.models.generate_content_stream(
            model=model, contents="First be silent."
        )
        return "".join([chunk.text or "" async for chunk in stream])

    same(set(await asyncio.gather(*map(waited, TALKS.values()))), {HELLO})


@check()
def stream_that_breaks_off(of: Case) -> None:
    said = ""
    try:
        for chunk in client(of).models.generate_content_stream(
            model=of.model, contents="Please break off."
        ):
            said += chunk.text or ""
    except Exception:
        return
    raise AssertionError(f"It was taken for an answer: {said}")


@check()
def spent_budget(of: Case) -> None:
    try:
        client(of, SPENT_KEY).models.generate_content(model=of.model, contents="Hello")
    except errors.ClientError as error:
        assert "budget" in str(error).lower(), error
        return same((error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    raise AssertionError("It was answered.")


@check(EMBEDS)
def vectors(of: Case) -> None:
    texts = ["A harbour at dusk", "Rain over Oslo"]
    answer = client(of).models.embed_content(model=of.model, contents=texts)
    same([one.values for one in answer.embeddings], [vector(text) for text in texts])
    narrow = types.EmbedContentConfig(output_dimensionality=4, task_type="RETRIEVAL_QUERY")
    one = client(of).models.embed_content(model=of.model, contents=texts[0], config=narrow)
    same(one.embeddings[0].values, vector(texts[0], 4))


@check()
def tokens(of: Case) -> None:
    assert client(of).models.count_tokens(model=of.model, contents="Hello").total_tokens > 0


@check()
def models(of: Case) -> None:
    names = [model.name for model in client(of).models.list(config={"page_size": 2})]
    assert f"models/{of.model}" in names, names


@check()
def unknown_model(of: Case) -> None:
    try:
        client(of).models.generate_content(model="nowhere/none", contents="Hello")
    except errors.ClientError as error:
        return same((error.code, error.status), (404, "NOT_FOUND"))
    raise AssertionError("It was answered.")


serve()
