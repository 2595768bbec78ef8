// Background responses that the gateway runs itself, with OpenAI's SDK: in front of any provider, with
// resumed streams, cancellation, and one bill.
import OpenAI from "openai";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob, carol, poor] = [1, 2, 3, 4].map(() => mintKey().secret) as [
  string,
  string,
  string,
  string,
];
const key = (id: string, secret: string, more = "") =>
  `{ id: ${id}, digest: ${digestKey(secret)}${more} }`;
const yaml = (up: string, settings = "{ max_response_mb: 1, max_responses: 5 }") => `
frontends:
  - { use: responses, with: { background: ${settings} } }
accounts: { acme: {} }
middleware:
  - use: auth
    with:
      keys: [${key("alice", alice)}, ${key("bob", bob, ", account: acme")}, ${key("carol", carol, ", account: acme")},
        ${key("poor", poor, ", limits: [usd=0.0000001/total]")}]
  - zdr
  - limits
providers:
  openai: { use: openai, with: { api_key: k, base_url: "${up}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up}" } }
models: { fast: [openai/gpt-4.1], translated: [claude/claude-opus-5] }
`;

const script = say("one two three four five six seven eight nine ten");
let up: TestUpstream;
let gateway: InProcessGateway;
const client = (apiKey = alice) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

/** A response that the provider begins and never ends. */
const stalled = {
  "POST /v1/responses": (request: Parameters<typeof script.toResponse>[0]) => ({
    ...script.toResponse(request),
    truncation: { after: { pieces: 4 }, how: "stall" } as const,
  }),
};

beforeAll(async () => {
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await up?.close();
});
beforeEach(() => {
  up.reset();
  up.setRoutes(scriptedModel(script));
});

type Response = OpenAI.Responses.Response;
const isOpen = ({ status }: Response) => status === "queued" || status === "in_progress";
async function ended(id: string, of = client()): Promise<Response> {
  let now: Response | undefined;
  await until(async () => !isOpen((now = await of.responses.retrieve(id))));
  return now!;
}

interface Row {
  readonly request: string;
  readonly outcome: string;
  readonly state: string;
  readonly kind: string;
}
const rows = async (request: string): Promise<readonly Row[]> => {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    readonly items: readonly Row[];
  };
  return items.filter((row) => row.request === request && row.kind === "settle");
};

it.each(["fast", "translated"])(
  "a response of %s is created, polled, and deleted",
  async (model) => {
    const { data: created, response } = await client()
      .responses.create({ model, input: "Count.", background: true })
      .withResponse();
    expect(created).toMatchObject({
      object: "response",
      status: "queued",
      background: true,
      model,
    });
    const done = await ended(created.id);
    expect(done).toMatchObject({ id: created.id, status: "completed", background: true });
    expect(done.output_text).toBe("one two three four five six seven eight nine ten");
    expect(done.usage?.input_tokens).toBe(10);
    const sent = up.requests.filter(({ method }) => method === "POST");
    expect(sent.map((one) => (one.json() as { background?: boolean }).background)).toEqual([
      undefined,
    ]);
    const request = response.headers.get("x-request-id");
    expect(await rows(request!)).toMatchObject([{ outcome: "ok", state: "exact" }]);
    expect(await client().responses.delete(created.id)).toMatchObject({
      id: created.id,
      object: "response",
      deleted: true,
    });
    await expect(client().responses.retrieve(created.id)).rejects.toMatchObject({
      status: 404,
      code: "response_not_found",
    });
  },
);

it("a stream that breaks off continues after any event, in both modes", async () => {
  for (const model of ["fast", "translated"]) {
    const stream = await client().responses.create({
      model,
      input: "Count.",
      background: true,
      stream: true,
    });
    const first: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) {
      first.push(event);
      if (first.length === 3) break;
    }
    const { id } = (first[0] as { response: Response }).response;
    expect(first.map((event) => event.sequence_number)).toEqual([0, 1, 2]);
    const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
    const resumed = await client().responses.retrieve(id, { stream: true, starting_after: 2 });
    for await (const event of resumed) rest.push(event);
    expect(rest.at(-1)).toMatchObject({ type: "response.completed", response: { id } });
    const all: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client().responses.retrieve(id, { stream: true }))
      all.push(event);
    expect(all).toEqual([...first, ...rest]);
    expect(all.map((event) => event.sequence_number)).toEqual(all.map((_, n) => n));
    for (let after = 0; after < all.length; after++) {
      const got: OpenAI.Responses.ResponseStreamEvent[] = [];
      const again = await client().responses.retrieve(id, { stream: true, starting_after: after });
      for await (const event of again) got.push(event);
      expect(got).toEqual(all.slice(after + 1));
    }
    await client().responses.delete(id);
  }
});

it("a canceled response is billed once for its use, and its streams end", async () => {
  up.setRoutes(stalled);
  const { data, response } = await client()
    .responses.create({ model: "fast", input: "Hi", background: true })
    .withResponse();
  const { id } = data;
  await up.waitForRequest(1);
  expect(await client().responses.retrieve(id)).toMatchObject({ status: "in_progress" });
  const following = (async () => {
    const events: string[] = [];
    for await (const event of await client().responses.retrieve(id, { stream: true }))
      events.push(event.type);
    return events;
  })();
  expect(await client().responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
  expect(await following).not.toContain("response.completed");
  expect(await client().responses.cancel(id)).toMatchObject({ status: "cancelled" });
  expect(await client().responses.retrieve(id)).toMatchObject({ status: "cancelled" });
  await up.requests[0]!.whenDone;
  expect(up.requests[0]!.state).toBe("aborted");
  expect(await rows(response.headers.get("x-request-id")!)).toMatchObject([
    { outcome: "canceled", state: "estimated" },
  ]);
  await client().responses.delete(id);
});

it("a response of another account does not exist, whatever is done with it", async () => {
  const { id } = await client(bob).responses.create({
    model: "fast",
    input: "Hi",
    background: true,
  });
  expect(await ended(id, client(carol))).toMatchObject({ status: "completed" });
  const unknown = `resp_${"x".repeat(32)}`;
  const answers = async (of: string) => {
    const all: unknown[] = [];
    for (const [method, path] of [
      ["GET", of],
      ["GET", `${of}?stream=true&starting_after=1`],
      ["POST", `${of}/cancel`],
      ["DELETE", of],
      ["GET", `${of}/input_items`],
    ]) {
      const response = await fetch(`${gateway.url}/v1/responses/${path}`, {
        method: method!,
        headers: { authorization: `Bearer ${alice}` },
      });
      all.push([
        response.status,
        (await response.text()).replaceAll(of, "ID").replace(/req_\w+/g, ""),
      ]);
    }
    return all;
  };
  const foreign = await answers(id);
  expect(foreign).toEqual(await answers(unknown));
  expect(foreign.map((one) => (one as [number])[0])).toEqual([404, 404, 404, 404, 404]);
  expect(await client(bob).responses.retrieve(id)).toMatchObject({ status: "completed" });
  await client(carol).responses.delete(id);
});

it("a request that is rejected gets its error, and leaves nothing", async () => {
  const create = (apiKey: string, more: object) =>
    client(apiKey).responses.create({ model: "fast", input: "Hi", background: true, ...more });
  await expect(create(poor, {})).rejects.toMatchObject({ status: 429 });
  await expect(create(alice, { model: "nope" })).rejects.toMatchObject({ status: 404 });
  await expect(create(alice, { store: false })).rejects.toMatchObject({ param: "background" });
  await expect(
    client().responses.create(
      { model: "fast", input: "Hi", background: true },
      { headers: { "service-zdr": "required" } },
    ),
  ).rejects.toMatchObject({ status: 400, code: "zdr_feature_conflict" });
  expect(up.requests.filter(({ method }) => method === "POST")).toEqual([]);
  expect(await readdir(join(gateway.stateDir, "frontends.responses"))).toEqual([]);
});

it("a response that fails says why, and one that is too large is stopped", async () => {
  up.setRoutes({
    "POST /v1/responses": {
      status: 400,
      body: '{"error":{"message":"No."}}',
      headers: { "content-type": "application/json" },
    },
  });
  const { id } = await client().responses.create({ model: "fast", input: "Hi", background: true });
  const failed = await ended(id);
  expect(failed).toMatchObject({ status: "failed", error: { code: "server_error" } });
  expect(failed.error?.message).toContain("No.");
  const events: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of await client().responses.retrieve(id, { stream: true }))
    events.push(event);
  expect(events).toMatchObject([{ type: "response.failed", sequence_number: 0, response: { id } }]);
  up.setRoutes(scriptedModel(say(`${"y".repeat(40_000)} `.repeat(40))));
  const large = await client().responses.create({ model: "fast", input: "Hi", background: true });
  expect((await ended(large.id)).error?.message).toContain("larger than 1048576 bytes");
  for (const one of [id, large.id]) await client().responses.delete(one);
});

it("the content is encrypted, and an account has a limited number of responses", async () => {
  const made: string[] = [];
  for (let n = 0; n < 5; n++) {
    const created = await client().responses.create({
      model: "fast",
      input: "Hi",
      background: true,
    });
    made.push(created.id);
    await ended(created.id);
  }
  await expect(
    client().responses.create({ model: "fast", input: "Hi", background: true }),
  ).rejects.toMatchObject({ status: 429, code: "too_many_stored_responses" });
  const dir = join(gateway.stateDir, "frontends.responses");
  const files = await readdir(dir);
  expect(files.length).toBe(5);
  for (const file of files) {
    const bytes = await readFile(join(dir, file));
    for (const text of ["seven", "output", made[0]!, "gpt-4.1"])
      expect(bytes.includes(text)).toBe(false);
  }
  for (const id of made) await client().responses.delete(id);
  expect(await readdir(dir)).toEqual([]);
});

it("a reload keeps running responses, and without the setting the request is rejected", async () => {
  up.setRoutes({
    "POST /v1/responses": (request) => ({ ...script.toResponse(request), chunkDelayMs: 50 }),
  });
  const { id } = await client().responses.create({ model: "fast", input: "Hi", background: true });
  await gateway.write(yaml(up.url, "{ max_responses: 6 }"));
  await gateway.ask("reload");
  expect(await ended(id)).toMatchObject({ status: "completed" });
  await client().responses.delete(id);
  await gateway.write(yaml(up.url).replace(/, with: \{ background: .*\} \}$/m, " }"));
  await gateway.ask("reload");
  await expect(
    client().responses.create({ model: "fast", input: "Hi", background: true }),
  ).rejects.toMatchObject({ status: 400, param: "background", code: "unsupported_parameter" });
});
