// The vendors' own SDKs run batches at the fake batch APIs, so the fakes have the vendors' formats.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { expect, it } from "vitest";
import { createBatchApi, messageBatchFormat, startUpstream } from "tollgate/testing";

it("OpenAI's SDK: files, batches, their pages, results, and a cancellation", async () => {
  const api = createBatchApi({
    answer: ({ id, body }) =>
      id === "bad"
        ? { status: 400, body: { error: { message: "No." } } }
        : { body: { text: body.input }, usage: { input: 3, cache_read: 2, output: 4 } },
  });
  await using up = await startUpstream(api.routes);
  const client = new OpenAI({ apiKey: "k", baseURL: `${up.url}/v1`, maxRetries: 0 });
  const lines = ["good", "bad"].map((custom_id) =>
    JSON.stringify({ custom_id, method: "POST", url: "/v1/embeddings", body: { input: "Grüße" } }),
  );
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join("\n")), "lines.jsonl"),
    purpose: "batch",
  });
  const submit = () =>
    client.batches.create({
      input_file_id: file.id,
      endpoint: "/v1/embeddings",
      completion_window: "24h",
      metadata: { tollgate_job: "j" },
    });
  const { id } = await submit();
  expect((await client.batches.retrieve(id)).status).toBe("in_progress");
  const batch = await client.batches.retrieve(id);
  expect(batch).toMatchObject({
    status: "completed",
    request_counts: { total: 2, completed: 1, failed: 1 },
    usage: { input_tokens: 5, input_tokens_details: { cached_tokens: 2 }, output_tokens: 4 },
  });
  const read = async (name: string) => JSON.parse(await (await client.files.content(name)).text());
  expect(await read(batch.output_file_id!)).toMatchObject({
    custom_id: "good",
    response: { status_code: 200, body: { text: "Grüße" } },
  });
  expect(await read(batch.error_file_id!)).toMatchObject({
    custom_id: "bad",
    response: { status_code: 400 },
  });
  const second = await submit();
  expect((await client.batches.cancel(second.id)).status).toBe("cancelling");
  const ids: string[] = [];
  for await (const one of client.batches.list({ limit: 1 })) ids.push(one.id);
  expect(ids).toEqual([second.id, id]);
  expect((await client.files.delete(file.id)).deleted).toBe(true);
});

it("Anthropic's SDK: batches, their pages, results, a cancellation, and a deletion", async () => {
  const api = createBatchApi({ format: messageBatchFormat });
  await using up = await startUpstream(api.routes);
  const client = new Anthropic({ apiKey: "k", baseURL: up.url, maxRetries: 0 });
  const params = {
    model: "claude",
    max_tokens: 9,
    messages: [{ role: "user" as const, content: "Hello" }],
  };
  const { id } = await client.messages.batches.create({ requests: [{ custom_id: "a", params }] });
  expect((await client.messages.batches.retrieve(id)).processing_status).toBe("in_progress");
  const batch = await client.messages.batches.retrieve(id);
  expect(batch).toMatchObject({ processing_status: "ended", request_counts: { succeeded: 1 } });
  // The fake returns Anthropic's own address, as the API does.
  const results = (await (await fetch(`${up.url}/v1/messages/batches/${id}/results`)).text())
    .split("\n")
    .filter((line) => line !== "");
  expect(results.map((line) => JSON.parse(line))).toMatchObject([
    {
      custom_id: "a",
      result: { type: "succeeded", message: { usage: { input_tokens: 10, output_tokens: 5 } } },
    },
  ]);
  const second = await client.messages.batches.create({ requests: [{ custom_id: "a", params }] });
  expect((await client.messages.batches.cancel(second.id)).processing_status).toBe("canceling");
  const ids: string[] = [];
  for await (const one of client.messages.batches.list({ limit: 1 })) ids.push(one.id);
  expect(ids).toEqual([second.id, id]);
  expect((await client.messages.batches.delete(id)).type).toBe("message_batch_deleted");
});
