// Batches with Anthropic's SDK, in front of a provider with another protocol.
import Anthropic from "@anthropic-ai/sdk";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { answerLine, fakeBatches, resetFakeBatches } from "../../kit/batch-provider.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob] = [mintKey().secret, mintKey().secret];
const provider = fileURLToPath(new URL("../../kit/batch-provider.ts", import.meta.url));
const YAML = `
frontends: [messages, jobs]
providers: { fake: { use: ${provider}, with: { api_key: secret } } }
middleware:
  - use: auth
    with:
      keys: [{ id: alice, digest: ${digestKey(alice)} }, { id: bob, digest: ${digestKey(bob)} }]
`;
let gateway: InProcessGateway;
beforeAll(async () => {
  gateway = await startInProcess({ yaml: YAML });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(() => void resetFakeBatches());

const anthropic = (apiKey: string) =>
  new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 }).messages.batches;

const requestOf = (custom_id: string, more = {}) => ({
  custom_id,
  params: {
    model: "fake/small",
    max_tokens: 100,
    messages: [{ role: "user" as const, content: `hello ${custom_id}` }],
    ...more,
  },
});

async function ended(client: Anthropic.Messages.Batches, { id }: { id: string }) {
  let batch = await client.retrieve(id);
  await until(async () => {
    batch = await client.retrieve(id);
    return batch.processing_status === "ended";
  });
  return batch;
}

it("a batch is created, translated line by line, and read", async () => {
  const client = anthropic(alice);
  const created = await client.create({
    requests: [requestOf("a"), requestOf("b"), requestOf("bad", { model: "nowhere/model" })],
  });
  expect(created).toMatchObject({
    type: "message_batch",
    processing_status: "in_progress",
    request_counts: { processing: 3, succeeded: 0 },
    results_url: null,
  });
  const batch = await ended(client, created);
  expect(batch.request_counts).toEqual({
    processing: 0,
    succeeded: 2,
    errored: 1,
    canceled: 0,
    expired: 0,
  });
  const found: Record<string, unknown> = {};
  for await (const { custom_id, result } of await client.results(batch.id))
    found[custom_id] =
      result.type === "succeeded"
        ? [result.message.type, (result.message.content[0] as { text: string }).text]
        : [result.type, result.type === "errored" && result.error.error.type];
  expect(found).toEqual({
    a: ["message", 'echo "hello a"'],
    b: ["message", 'echo "hello b"'],
    bad: ["errored", "not_found_error"],
  });
  const [sent] = [...fakeBatches().batches.values()];
  expect(JSON.parse(sent!.lines[0]!.body)).toMatchObject({ model: "small" });
  await expect(anthropic(bob).retrieve(batch.id)).rejects.toMatchObject({ status: 404 });
  expect(await client.delete(batch.id)).toEqual({ id: batch.id, type: "message_batch_deleted" });
  await expect(client.retrieve(batch.id)).rejects.toMatchObject({ status: 404 });
});

it("a canceled batch has the results of the lines that ran", async () => {
  const client = anthropic(alice);
  const api = fakeBatches();
  api.pollsToEnd = 1_000;
  api.results = ({ lines }) => [answerLine(lines[0]!)];
  const created = await client.create({ requests: [requestOf("a"), requestOf("b")] });
  await until(() => api.batches.size === 1);
  const canceling = await client.cancel(created.id);
  expect(canceling.processing_status).toBe("canceling");
  const batch = await ended(client, created);
  expect(batch.request_counts).toMatchObject({ succeeded: 1, canceled: 1 });
  const ids: string[] = [];
  for await (const { id } of client.list()) ids.push(id);
  expect(ids[0]).toBe(created.id);
});

it("a body that is not valid is rejected with the request, and nothing is stored", async () => {
  const post = async (body: string) => {
    const response = await fetch(`${gateway.url}/v1/messages/batches`, {
      method: "POST",
      headers: {
        "x-api-key": alice,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
      },
      body,
    });
    const { error } = (await response.json()) as { error: { message: string } };
    return [response.status, error.message];
  };
  const [status, message] = await post('{"requests":[{"custom_id":"a","params":{}},\n {oops}]}');
  expect(status).toBe(400);
  expect(message).toContain("line 2, column 2");
  expect((await post('{"requests":[]}'))[0]).toBe(400);
  const twice = JSON.stringify({ requests: [requestOf("a"), requestOf("a")] });
  expect((await post(twice))[1]).toContain("not unique");
  expect(fakeBatches().batches.size).toBe(0);
});
