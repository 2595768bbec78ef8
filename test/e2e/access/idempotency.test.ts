// Requests with one Idempotency-Key are billed once, at any worker.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonResponse, say } from "tollgate/testing";
import { startDaemonWithUpstream, type DaemonWithUpstream } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

let house: DaemonWithUpstream;
let hold: Promise<void> | undefined;

beforeAll(async () => {
  house = await startDaemonWithUpstream(
    {
      "POST /*": async (asked) => {
        await hold;
        if (asked.body.includes("fail")) return jsonResponse({ error: { message: "no" } }, 400);
        return say("Hello.").usage({ input: 7, output: 2 }).toResponse(asked);
      },
    },
    (url) => `workers: 2
store: memory
frontends: [chat-completions, messages, responses]
middleware: [auth]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k }
    models: { model: { price: { input: 1, output: 10 } } }
`,
  );
});
afterAll(() => house[Symbol.asyncDispose]());

const ROUTES = {
  "/v1/chat/completions": (text: string) => ({ messages: [{ role: "user", content: text }] }),
  "/v1/messages": (text: string) => ({
    max_tokens: 50,
    messages: [{ role: "user", content: text }],
  }),
  "/v1/responses": (text: string) => ({ input: text }),
} as const;

async function ask(name: string, text: string, path: keyof typeof ROUTES, more: object = {}) {
  const { gateway } = house;
  const res = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${gateway.key}`,
      "x-api-key": gateway.key,
      "idempotency-key": name,
      // On its own connection, which either worker may get.
      connection: "close",
    },
    body: JSON.stringify({ model: "up/model", ...ROUTES[path](text), ...more }),
  });
  return { status: res.status, text: await res.text(), retry: res.headers.get("x-should-retry") };
}

describe.each(Object.keys(ROUTES) as (keyof typeof ROUTES)[])("at %s", (path) => {
  it.each([true, false])("as a stream: %s", async (stream) => {
    const { up } = house;
    up.reset();
    const name = `${path} ${stream}`;
    let go = () => {};
    hold = new Promise((resolve) => (go = resolve));
    const first = ask(name, "Hi", path, { stream });
    await until(() => up.requests.some(({ method }) => method === "POST"));
    const others = await Promise.all(
      Array.from({ length: 6 }, () => ask(name, "Hi", path, { stream })),
    );
    expect(others.map(({ status }) => status)).toEqual(Array(6).fill(409));
    expect(others[0]!.text).toContain("idempotency_in_flight");
    const other = await ask(name, "Something else", path, { stream });
    expect(other.status).toBe(422);
    expect(other.text).toContain("idempotency_mismatch");
    go();
    expect((await first).status).toBe(200);
    await until(async () => (await ask(name, "Hi", path, { stream })).text.includes("_done"));
    const again = await ask(name, "Hi", path, { stream });
    expect(again.status).toBe(409);
    expect(again.retry).toBe("false");
    expect(again.text).not.toContain("Hello.");
    const { error } = JSON.parse(again.text);
    expect(error.details).toMatchObject({
      status: 200,
      usage: { input: 7, output: 2 },
      cost_nano_usd: "27000",
    });
    // Requests for a provider's model list are no calls of a client.
    await house.gateway.ask("models.refresh");
    const calls = up.requests.filter(({ method }) => method === "POST");
    expect(
      calls.map(({ path, state }) => [path, state]),
      await house.gateway.output(),
    ).toHaveLength(1);
  });
});

it("a request that was not billed can be repeated, and a name of another key is separate", async () => {
  const { up, gateway } = house;
  hold = undefined;
  up.reset();
  const path = "/v1/chat/completions";
  for (const _ of [1, 2]) expect((await ask("n", "fail", path)).status).toBe(400);
  expect(up.requests.filter(({ method }) => method === "POST").length).toBe(2);
  const { secret } = (await gateway.ask("keys.create", { name: "b" })) as { secret: string };
  expect((await ask("mine", "Hi", path)).status).toBe(200);
  const res = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${secret}`,
      "idempotency-key": "mine",
    },
    body: JSON.stringify({ model: "up/model", ...ROUTES[path]("Other") }),
  });
  expect(res.status).toBe(200);
});

it("an invalid idempotency key is rejected", async () => {
  expect((await ask("x".repeat(256), "Hi", "/v1/chat/completions")).status).toBe(400);
});
