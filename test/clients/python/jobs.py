"""Files, uploads, batches, background responses, and videos with the SDKs of OpenAI, Anthropic, and LiteLLM.

Prints one JSON object with what each SDK received.
"""

import json
import os
import sys
import time

import anthropic
import litellm
import openai

URL = os.environ["GATEWAY_URL"]
KEY = os.environ["GATEWAY_KEY"]
MODEL = "plain/small"
ENDED = ("completed", "failed", "expired", "cancelled")


def lines(ids):
    body = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    line = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    return "\n".join(json.dumps({"custom_id": one, **line}) for one in ids).encode()


def wait(read, ended):
    while not ended(found := read()):
        time.sleep(0.05)
    return found


def texts(content):
    found = (json.loads(line) for line in content.decode().splitlines())
    return sorted(
        one["custom_id"] + " " + one["response"]["body"]["choices"][0]["message"]["content"]
        for one in found
    )


def openai_batch():
    client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    file = client.files.create(file=("in.jsonl", lines(["a", "b"])), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    batch = wait(lambda: client.batches.retrieve(batch.id), lambda one: one.status in ENDED)
    assert batch.id in [one.id for one in client.batches.list()]
    return [batch.status, texts(client.files.content(batch.output_file_id).read())]


def openai_upload():
    client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    content = lines(["a", "b", "c"])
    file = client.uploads.upload_file_chunked(
        file=content,
        filename="parts.jsonl",
        bytes=len(content),
        mime_type="application/jsonl",
        purpose="batch",
        part_size=100,
    ).file
    same = client.files.content(file.id).read() == content
    return [same, client.files.delete(file.id).deleted]


def openai_background():
    client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    created = client.responses.create(model=MODEL, input="hello", background=True)
    done = wait(
        lambda: client.responses.retrieve(created.id),
        lambda one: one.status not in ("queued", "in_progress"),
    )
    return [created.status, done.status, done.output_text]


def openai_native_background():
    client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    created = client.responses.create(model="native/large", input="hello", background=True)
    done = wait(
        lambda: client.responses.retrieve(created.id),
        lambda one: one.status not in ("queued", "in_progress"),
    )
    events = [one.type for one in client.responses.retrieve(created.id, stream=True)]
    client.responses.delete(created.id)
    return [created.status, done.status, done.output_text, events[-1]]


def openai_video():
    client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    video = client.videos.create(
        model="film/film-1", prompt="A cat on a fence", seconds="8", size="1280x720"
    )
    first = video.status
    video = wait(
        lambda: client.videos.retrieve(video.id), lambda one: one.status in ("completed", "failed")
    )
    content = client.videos.download_content(video.id).read()
    listed = video.id in [one.id for one in client.videos.list()]
    deleted = client.videos.delete(video.id).deleted
    return [first, video.status, video.seconds, len(content), listed, deleted]


def anthropic_batch():
    client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
    params = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    batch = client.messages.batches.create(
        requests=[{"custom_id": one, "params": params} for one in ("a", "b")]
    )
    batch = wait(
        lambda: client.messages.batches.retrieve(batch.id),
        lambda one: one.processing_status == "ended",
    )
    results = client.messages.batches.results(batch.id)
    found = sorted(f"{one.custom_id} {one.result.message.content[0].text}" for one in results)
    return [batch.request_counts.succeeded, found]


def litellm_batch():
    of = {"custom_llm_provider": "openai", "api_base": f"{URL}/v1", "api_key": KEY}
    file = litellm.create_file(file=("in.jsonl", lines(["a", "b"])), purpose="batch", **of)
    batch = litellm.create_batch(
        completion_window="24h",
        endpoint="/v1/chat/completions",
        input_file_id=file.id,
        **of,
    )
    batch = wait(
        lambda: litellm.retrieve_batch(batch_id=batch.id, **of), lambda one: one.status in ENDED
    )
    content = litellm.file_content(file_id=batch.output_file_id, **of)
    return [batch.status, texts(content.content)]


results = {}
for run in (
    openai_batch,
    openai_upload,
    openai_background,
    openai_native_background,
    openai_video,
    anthropic_batch,
    litellm_batch,
):
    try:
        results[run.__name__] = run()
    except Exception as error:  # The test shows it.
        results[run.__name__] = f"{type(error).__name__}: {error}"
json.dump(results, sys.stdout)
