// Background responses that OpenAI runs, with OpenAI's SDK: created, polled, continued, canceled, and
// deleted under the gateway's IDs, and billed once by the usage of the final response.
import OpenAI from "openai";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  createBackgroundApi,
  say,
  startUpstream,
  type BackgroundApi,
  type BackgroundApiOptions,
  type ScriptedRoutes,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob] = [1, 2].map(() => mintKey().secret) as [string, string];
const yaml = (up: string) => `
frontends:
  - { use: responses, with: { background: { native: true, max_responses: 5, dir: ${dir} } } }
scopes:
  spent:
    models: ["openai/gpt-4.1-mini"]
    limits: [usd=0.000001/day]
    overflow: { downgrade: claude/claude-opus-5 }
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: ${digestKey(alice)}, limits: [usd=1/total] }
        - { id: bob, digest: ${digestKey(bob)} }
  - zdr
  - limits
  - ./refuser.mjs
providers:
  openai: { use: openai, state_mode: relay, with: { api_key: k, base_url: "${up}/v1" } }
  claude: { use: anthropic, with: { api_key: k, base_url: "${up}" } }
models:
  fast: [openai/gpt-4.1]
  translated: [claude/claude-opus-5]
  refused: [openai/gpt-4.1-nano, claude/claude-opus-5]
  spent: [openai/gpt-4.1-mini]
`;

/** Refuses one model when a request to it is encoded. */
const REFUSER = `import { defineMiddleware, fail } from "tollgate/plugin";
export default defineMiddleware({
  api: 1,
  name: "refuser",
  summary: "Refuses a model",
  sends: "nowhere",
  setup: () => ({
    prepare(_, call) {
      if (call.model === "gpt-4.1-nano") fail("unsupported", "Refused.");
    },
  }),
});
`;

/** Is too busy to process a result. */
const BUSY = `import { defineMiddleware, fail } from "tollgate/plugin";
export default defineMiddleware({
  api: 1,
  name: "busy",
  summary: "Processes nothing",
  sends: "nowhere",
  setup: () => ({ event: () => () => fail("overloaded", "Busy.") }),
});
`;

const script = say("run by the gateway");
let up: TestUpstream;
let gateway: InProcessGateway;
let api: BackgroundApi;
let dir: string;
const client = (apiKey = alice) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

/** The provider runs requests in the background as this API does, and all others by a script. */
function setApi(options: BackgroundApiOptions = {}): void {
  api = createBackgroundApi({ text: "run by the provider", ...options });
  const [path, handle] = Object.entries(api.routes("/responses"))[0]!;
  const run = (request: Parameters<typeof script.toResponse>[0]) => script.toResponse(request);
  up.setRoutes({
    [path]: ((request) =>
      request.method === "POST" &&
      request.path === "/v1/responses" &&
      !JSON.parse(request.body.toString()).background
        ? run(request)
        : (handle as (of: typeof request) => ReturnType<typeof run>)(
            request,
          )) as ScriptedRoutes[string],
    "POST /v1/messages": run,
  });
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "tollgate-native-"));
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url), files: { "refuser.mjs": REFUSER } });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await up?.close();
  await rm(dir, { recursive: true, force: true });
});
beforeEach(() => {
  up.reset();
  setApi();
});

type Response = OpenAI.Responses.Response;
const create = (more: object = {}) =>
  client()
    .responses.create({ model: "fast", input: "Hi", background: true, ...more })
    .withResponse() as Promise<{ data: Response; response: globalThis.Response }>;
async function ended(id: string): Promise<Response> {
  let now: Response | undefined;
  await until(async () => {
    now = await client().responses.retrieve(id);
    return now.status !== "queued" && now.status !== "in_progress";
  });
  return now!;
}

interface Row {
  readonly request: string;
  readonly state: string;
  readonly kind: string;
  readonly outcome: string;
}
async function readRows(): Promise<readonly Row[]> {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    readonly items: readonly Row[];
  };
  return items.filter(({ kind }) => kind === "settle");
}
/** Settled rows of a response: of its job, and of its call. */
async function rowsOf(response: globalThis.Response, id: string): Promise<readonly Row[]> {
  const requests = [response.headers.get("x-request-id"), `response_${id.slice(5)}.1`];
  return (await readRows()).filter(({ request }) => requests.includes(request));
}

it("a response is run by the provider, and billed once by its usage", async () => {
  const { data: created, response } = await create();
  expect(created).toMatchObject({ object: "response", status: "queued", background: true });
  const done = await ended(created.id);
  expect(done).toMatchObject({
    id: created.id,
    status: "completed",
    background: true,
    store: true,
    model: "fast",
    output_text: "run by the provider",
    usage: { input_tokens: 11, output_tokens: 7 },
  });
  const [sent] = api.requests;
  expect(JSON.parse(sent!.body.toString())).toEqual({
    model: "gpt-4.1",
    input: "Hi",
    background: true,
    store: true,
  });
  expect(JSON.stringify(done)).not.toContain("resp_up");
  const rows = await rowsOf(response, created.id);
  expect(rows.map(({ state }) => state).toSorted()).toEqual(["exact", "void"]);
  await client().responses.delete(created.id);
  await expect(client().responses.retrieve(created.id)).rejects.toMatchObject({ status: 404 });
  await until(() => api.responses.size === 0);
});

it("a stream of a response that has ended continues after any event", async () => {
  const { data } = await create();
  const following = (async () => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client().responses.retrieve(data.id, { stream: true }))
      events.push(event);
    return events;
  })();
  await ended(data.id);
  const all = await following;
  expect(all.map((event) => event.sequence_number)).toEqual(all.map((_, n) => n));
  expect(all.at(-1)).toMatchObject({ type: "response.completed", response: { id: data.id } });
  const text = all.flatMap((one) => (one.type === "response.output_text.delta" ? one.delta : []));
  expect(text.join("")).toBe("run by the provider");
  for (let after = 0; after < all.length; after++) {
    const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
    const stream = await client().responses.retrieve(data.id, {
      stream: true,
      starting_after: after,
    });
    for await (const event of stream) rest.push(event);
    expect(rest).toEqual(all.slice(after + 1));
  }
  await client().responses.delete(data.id);
});

it("a response is canceled at the provider, and billed once as an estimate", async () => {
  setApi({ polls: Infinity });
  const { data, response } = await create();
  expect(await client().responses.cancel(data.id)).toMatchObject({
    id: data.id,
    status: "cancelled",
  });
  expect([...api.responses.values()].map(({ state }) => state)).toEqual(["canceled"]);
  expect(await rowsOf(response, data.id)).toMatchObject([
    { state: "estimated", outcome: "canceled" },
  ]);
  await client().responses.delete(data.id);
});

it("a response that failed says why, and costs nothing", async () => {
  setApi({ outcome: "failed" });
  const { data, response } = await create();
  expect(await ended(data.id)).toMatchObject({
    status: "failed",
    error: { code: "server_error", message: "The model failed." },
  });
  expect(await rowsOf(response, data.id)).toMatchObject([{ state: "void", outcome: "failed" }]);
  await client().responses.delete(data.id);
});

it("a message about the gateway's account is replaced", async () => {
  const error = { code: "insufficient_quota", message: "Account org-123 has no credit." };
  const failed = { id: "resp_up1", object: "response", status: "failed", error, output: [] };
  setApi({
    failure: ({ method }) =>
      method === "GET" ? { status: 200, body: JSON.stringify(failed) } : undefined,
  });
  const { data } = await create();
  expect((await ended(data.id)).error).toEqual({
    code: "server_error",
    message: "The gateway's account with the provider has no credit or quota left.",
  });
  await client().responses.delete(data.id);
});

it("a response is canceled if the gateway does not have its request", async () => {
  setApi({ polls: Infinity });
  const { data } = await create();
  const folder = join(dir, "responses");
  for (const name of await readdir(folder))
    if (name.endsWith(".request")) await rm(join(folder, name));
  expect(await client().responses.cancel(data.id)).toMatchObject({ status: "cancelled" });
  expect([...api.responses.values()].map(({ state }) => state)).toEqual(["canceled"]);
  await client().responses.delete(data.id);
});

it("a call that was only reserved is billed once as an estimate", async () => {
  let reads = 0;
  setApi({
    polls: 0,
    failure: ({ method }) =>
      method === "GET" && ++reads > 1
        ? { status: 404, body: '{"error":{"message":"No such response."}}' }
        : undefined,
  });
  await using busy = await startInProcess({
    yaml: yaml(up.url).replace("./refuser.mjs", "./busy.mjs").replace(dir, `${dir}/busy`),
    files: { "busy.mjs": BUSY },
  });
  const own = new OpenAI({ apiKey: alice, baseURL: `${busy.url}/v1`, maxRetries: 0 });
  const { id } = await own.responses.create({ model: "fast", input: "Hi", background: true });
  await until(async () => (await own.responses.retrieve(id)).status === "failed");
  const { items } = (await busy.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    readonly items: readonly Row[];
  };
  const settled = items.filter(({ kind }) => kind === "settle");
  expect(settled.map(({ state, outcome }) => `${state} ${outcome}`).toSorted()).toEqual([
    "estimated deleted",
    "void deleted",
  ]);
});

it.each(["refused", "spent"])("the gateway runs %s with its other model", async (model) => {
  const { data } = await create({ model });
  expect(await ended(data.id)).toMatchObject({ output_text: "run by the gateway" });
  expect(api.responses.size).toBe(0);
  await client().responses.delete(data.id);
});

it("the gateway runs a response that the provider refuses, or that is streamed", async () => {
  setApi({ failure: () => ({ status: 503, body: "{}" }) });
  const { data } = await create();
  expect(await ended(data.id)).toMatchObject({ output_text: "run by the gateway" });
  setApi();
  const stream = await client().responses.create({
    model: "fast",
    input: "Hi",
    background: true,
    stream: true,
  });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  expect(types).toContain("response.output_text.delta");
  expect(api.responses.size).toBe(0);
  const { data: translated } = await create({ model: "translated" });
  expect(await ended(translated.id)).toMatchObject({ output_text: "run by the gateway" });
  for (const { id } of [data, translated]) await client().responses.delete(id);
});

it("a lost answer is an error, billed once, and its idempotency key is kept", async () => {
  setApi({ failure: () => ({ truncation: { after: "nothing", how: "reset" } }) });
  const headers = { "idempotency-key": "once" };
  const send = () =>
    client().responses.create({ model: "fast", input: "Hi", background: true }, { headers });
  await expect(send()).rejects.toMatchObject({ status: 502, code: "background_start_unknown" });
  await expect(send()).rejects.toMatchObject({ status: 409 });
  const isLost = ({ outcome, state }: Row) => outcome === "lost" && state === "estimated";
  await until(async () => (await readRows()).filter(isLost).length === 1);
});

it("a response is continued by its ID, and does not exist for another key", async () => {
  const { data } = await create();
  await ended(data.id);
  await expect(client(bob).responses.retrieve(data.id)).rejects.toMatchObject({ status: 404 });
  await expect(client(bob).responses.cancel(data.id)).rejects.toMatchObject({ status: 404 });
  const { data: next } = await create({ previous_response_id: data.id });
  expect(await ended(next.id)).toMatchObject({ status: "completed" });
  const bodies = [...api.responses.values()].map(({ body }) => body["previous_response_id"]);
  expect(bodies).toEqual([undefined, "resp_up1"]);
  await expect(
    client().responses.create(
      { model: "fast", input: "Hi", background: true },
      { headers: { "service-zdr": "required" } },
    ),
  ).rejects.toMatchObject({ status: 400, code: "zdr_feature_conflict" });
  for (const { id } of [data, next]) await client().responses.delete(id);
});
