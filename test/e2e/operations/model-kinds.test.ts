// Rules for every built-in model type: it is listed by its type, served by the offline demo,
// billed, limited by its own unit, explained, counted, suggested at other endpoints, and in the
// catalog with a price.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Limit } from "tollgate/plugin";
import { BUILT_IN_OPERATIONS } from "../../../src/model/operations/built-in-operations.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { sumSamples } from "../../kit/exposition.ts";
import { until } from "../../kit/wait.ts";
import { OPERATIONS, type Body } from "./table.ts";

const TOKEN = "scraper-".padEnd(32, "0123456789");

interface Spoken {
  readonly frontend: string;
  readonly path: string;
  readonly model: string;
  /** Beside the model. */
  readonly body: Body;
  /** Usage of its requests before the call. */
  readonly unit: Limit["unit"];
  /** The name in the GenAI conventions, if they have one. */
  readonly operation: string;
  /** A vendor's model with a price in the catalog. If unset, no known page has one. */
  readonly priced?: string | undefined;
}

const CHAT: Spoken = {
  frontend: "chat-completions",
  path: "/v1/chat/completions",
  model: "demo/echo",
  body: { messages: [{ role: "user", content: "Hello" }] },
  unit: "output",
  operation: "chat",
  priced: "openai/gpt-5",
};
const EACH: readonly (readonly [kind: string, Spoken])[] = [
  ["chat", CHAT],
  ...Object.entries(OPERATIONS).map(([frontend, { kind, demo, catalog, convention, ...rest }]) => {
    const { path, body, unit } = rest;
    const of = { frontend, path, model: demo, body, unit, operation: convention ?? kind };
    return [kind, { ...of, priced: catalog }] as const;
  }),
];
/** Served over a socket and not by the demo: test/e2e/realtime. */
const SOCKET_ONLY = "realtime";
/** Ends long after its request: test/e2e/jobs/videos. */
const JOB_ONLY = "video";

const keys = { alice: "alice-key", ...Object.fromEntries(EACH.map(([k]) => [k, `${k}-key`])) };
let at: InProcessGateway;
let admin: string;
beforeAll(async () => {
  const limited = EACH.map(
    ([kind, { unit }]) =>
      `        - { id: ${kind}, digest: "${digestKey(`${kind}-key`)}", limits: [${unit}=0/total] }`,
  );
  at = await startInProcess({
    env: { T: TOKEN },
    yaml: `
store: memory
admin: { port: 0, tokens: { scraper: { role: metrics, token: "\${env:T}" } } }
frontends: [${EACH.map(([, { frontend }]) => frontend).join(", ")}, models]
observers: [metrics]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(keys.alice)}" }
${limited.join("\n")}
  - zdr
  - limits
providers:
  demo: demo
  openai: { use: openai, with: { base_url: "http://127.0.0.1:9/v1", api_key: k } }
  cohere: { use: cohere, with: { base_url: "http://127.0.0.1:9/v1", api_key: k } }
`,
  });
  admin = ((await at.ask("status")) as { adminUrl: string }).adminUrl;
});
afterAll(() => at?.[Symbol.asyncDispose]());

const send = (path: string, body: string | FormData, key: string, more: object = {}) =>
  fetch(`${at.url}${path}`, {
    method: "POST",
    body,
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === "string" && { "content-type": "application/json" }),
      ...more,
    },
  });

/** A body with bytes is sent as a form. */
function ask(
  { path, model, body }: Spoken,
  key: string = keys.alice,
  more: object = {},
): Promise<Response> {
  if (!hasBytes(body)) return send(path, JSON.stringify({ model, ...body }), key, more);
  const form = new FormData();
  form.set("model", model);
  for (const [name, value] of Object.entries(body))
    if (Buffer.isBuffer(value)) form.set(name, new File([new Uint8Array(value)], "a.wav"));
    else form.set(name, String(value));
  return send(path, form, key, more);
}

const hasBytes = (body: Body): boolean => Object.values(body).some((one) => Buffer.isBuffer(one));

const listed = async (query: string): Promise<any[]> => {
  const headers = { authorization: `Bearer ${keys.alice}` };
  const res = await fetch(`${at.url}/v1/models${query}`, { headers });
  return ((await res.json()) as any).data;
};
const settles = async (): Promise<any[]> =>
  ((await at.ask("ledger.entries", { limit: 200 })) as any).items.filter(
    (row: any) => row.kind === "settle",
  );
const scraped = async () =>
  (await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();

it("each built-in operation is listed here", () => {
  const built = [...BUILT_IN_OPERATIONS.keys()].filter(
    (name) => name !== SOCKET_ONLY && name !== JOB_ONLY,
  );
  expect(EACH.map(([kind]) => kind).toSorted()).toEqual(built);
});

describe.each(EACH)("%s", (kind, of) => {
  const { path, model, frontend, operation, priced } = of;
  it("is listed by its type, and by no other", async () => {
    const own = await listed(`?operation=${kind}`);
    expect(own.find(({ id }) => id === model)).toMatchObject({ operation: kind });
    expect(new Set(own.map((row) => row.operation))).toEqual(new Set([kind]));
    for (const other of BUILT_IN_OPERATIONS.keys())
      if (other !== kind)
        expect((await listed(`?operation=${other}`)).map(({ id }) => id)).not.toContain(model);
  });

  it("is served by the demo, also under Service-ZDR, and billed as exact", async () => {
    const before = (await settles()).length;
    for (const more of [{}, { "service-zdr": "required" }]) {
      const res = await ask(of, keys.alice, more);
      expect([res.status, res.status === 200 || (await res.text())]).toEqual([200, true]);
      await res.arrayBuffer();
    }
    await until(async () => (await settles()).length === before + 2);
    for (const row of (await settles()).slice(before))
      expect([row.state, row.costNano, `${row.target.provider}/${row.target.model}`]).toEqual([
        "exact",
        "0",
        model,
      ]);
  });

  it("is limited by its own unit, before the call", async () => {
    const res = await ask(of, `${kind}-key`);
    expect([res.status, (await res.json()) as any]).toMatchObject([429, { error: {} }]);
  });

  it("is explained", async () => {
    const told = (await at.ask("explain", { model })) as any;
    expect(told.frontend).toBe(frontend);
    expect(told.candidates).toEqual([expect.objectContaining({ id: model })]);
  });

  it("is counted by its operation, and by the name in the semantic conventions", async () => {
    await (await ask(of)).arrayBuffer();
    await until(
      async () =>
        sumSamples(await scraped(), "tollgate_requests_total", `operation="${kind}",outcome="ok"`) >
        0,
    );
    // A model list has the type of most of its requests: the call itself may be counted later.
    await until(async () => (await scraped()).includes(`gen_ai_operation_name="${operation}"`));
  });

  it("at another endpoint, the error names the right one", async () => {
    const [, other] = EACH.find(([name, { body }]) => name !== kind && !hasBytes(body))!;
    const res = await send(other.path, JSON.stringify({ ...other.body, model }), keys.alice);
    expect([res.status, await res.text()]).toEqual([400, expect.stringContaining(path)]);
  });

  it("has a schema of its requests", async () => {
    const file = join(import.meta.dirname, "../../../schemas", `${frontend}.request.json`);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ type: "object" });
  });

  it.skipIf(priced === undefined)("is in the catalog with a price", async () => {
    const { models } = (await at.ask("models.explain", { model: priced! })) as any;
    expect(models).toMatchObject([{ operation: kind, example: { usd: expect.any(String) } }]);
  });
});
