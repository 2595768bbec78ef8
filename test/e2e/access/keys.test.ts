// Permissions of a key, set on the command line and enforced by a running gateway, and the errors
// for its client.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { installTestClock } from "../../kit/clock.ts";
import { parseKey } from "../../../src/lib/api-key.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { until } from "../../kit/wait.ts";

const yaml = (url: string, hold = "expected", more = "") => `
frontends: [chat-completions, messages, responses, images, usage]
middleware: [auth, zdr, { use: limits, with: { hold: ${hold} } }, usage]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: "k", images: ["draw"] }
    models:
      model: { price: { input: 3, output: 15 }, limits: { output: 4096 } }
      draw: { operation: image, price: { images: 0.04 } }
${more}
`;

let up: TestUpstream;
let at: InProcessGateway;
let held: Promise<void> | undefined;
beforeAll(async () => {
  const pictures = JSON.stringify({
    created: 1,
    data: [{ b64_json: "aGk=" }, { b64_json: "aGk=" }],
  });
  up = await startUpstream({
    ...scriptedModel(async () => {
      await held;
      return say("Hello").usage({ input: 100, output: 200 });
    }),
    "POST /v1/images/generations": {
      headers: { "content-type": "application/json" },
      body: pictures,
    },
  });
  at = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

/** A key made on the command line, as an operator makes it. */
async function made(...flags: string[]): Promise<string> {
  const { out, err, code } = await runTollgate(at, ["keys", "create", "--name", "k", ...flags]);
  expect(err).not.toContain("error");
  expect(code).toBe(0);
  return out.trim();
}

/** While one is open there are others. It ends when one of them is answered. */
async function atOnce(ask: () => Promise<Response>): Promise<Response[]> {
  const free = Promise.withResolvers<void>();
  held = free.promise;
  const asked = [ask(), ask(), ask()];
  await Promise.race(asked);
  free.resolve();
  held = undefined;
  return Promise.all(asked);
}

const idOf = (key: string) => parseKey(key)!.id;

/** On the control socket, if the test is not about options. */
async function quickly(...limits: string[]): Promise<string> {
  return ((await at.ask("keys.create", { limits } as never)) as { secret: string }).secret;
}

const ask = (key: string, body: object = {}, headers: Record<string, string> = {}) =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({
      model: "up/model",
      max_tokens: 300,
      messages: [{ role: "user", content: "hi" }],
      ...body,
    }),
  });
const draw = (key: string, n: number) =>
  fetch(`${at.url}/v1/images/generations`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "up/draw", prompt: "a gate", n, response_format: "b64_json" }),
  });

describe("every field of a key has an option and is enforced", () => {
  it("models and frontends", async () => {
    const key = await made("--models", "up/mod*", "--frontends", "chat-completions,images");
    expect((await ask(key)).status).toBe(200);
    expect((await ask(key, { model: "up/other" })).status).toBe(403);
    const elsewhere = await fetch(`${at.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "up/model", input: "hi" }),
    });
    expect(elsewhere.status).toBe(403);
  });

  it("minimum privacy", async () => {
    const key = await made("--privacy", "required");
    const answer = await ask(key);
    // This provider has no policy, so nothing is sent to it.
    expect(answer.status).toBe(403);
  });

  it("an expiry date", async () => {
    const time = installTestClock({ wall: true });
    const key = await made("--expires", "1h");
    time.skip(3_000_000);
    expect((await ask(key)).status).toBe(200);
    time.skip(600_001);
    await until(async () => (await ask(key)).status === 401);
  });

  it("labels, on each of its rows", async () => {
    const key = await made("--label", "team=red");
    await (await ask(key)).text();
    const { out } = await runTollgate(at, ["usage", "--by", "label", "--json"]);
    expect(JSON.parse(out).rows.map((row: any) => row.label)).toContain("team=red");
  });

  it.each([
    ["requests=2/minute", "requests", 2],
    ["concurrent=1", "concurrent", 1],
    ["tokens=900/minute", "tokens", 900],
    ["input=70/minute", "input", 70],
    ["output=500/minute", "output", 500],
    ["images=3/minute", "images", 3],
    ["usd=0.01/day", "nano_usd", 10_000_000],
    ["usd=0.01/week", "nano_usd", 10_000_000],
    ["usd=0.01/month", "nano_usd", 10_000_000],
    ["usd=0.01/total", "nano_usd", 10_000_000],
  ])(
    "--limit %s is reported with its value and its reset when it is reached",
    async (flag, unit, max) => {
      const key = await made("--limit", flag);
      const once = () => (unit === "images" ? draw(key, 2) : ask(key, { max_tokens: 300 }));
      const answers = unit === "concurrent" ? await atOnce(once) : [];
      for (let i = 0; answers.every(({ status }) => status === 200) && i < 6; i++)
        answers.push(await once());
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
      const refused = answers.find(({ status }) => status === 429)!;
      const { error } = (await refused.json()) as { error: { message: string; code: string } };
      const per = flag.split("/")[1];
      expect(error.message).toContain(unit === "nano_usd" ? "$0.01" : String(max));
      expect(error.message).toContain(per === undefined ? "concurrent requests" : per);
      expect(error.code).toBe(unit === "nano_usd" ? "insufficient_quota" : "rate_limit_exceeded");
      if (per === "minute") {
        const [, again] = /Retry after (\d+) s\.$/.exec(error.message)!;
        expect(refused.headers.get("retry-after")).toBe(again);
        expect(refused.headers.get("x-should-retry")).toBe("true");
        expect(Number(again)).toBeGreaterThan(0);
      }
      // A spent budget is not retried.
      if (unit === "nano_usd") expect(refused.headers.get("x-should-retry")).toBe("false");
    },
  );
});

describe("the end of a key", () => {
  it("rotation keeps the old secret valid for some time, as the same key in the ledger", async () => {
    const first = await made();
    const id = idOf(first);
    const { secret: second } = (await at.ask("keys.rotate", { id, overlapMs: 3_000 })) as {
      secret: string;
    };
    expect(second).not.toBe(first);
    expect((await ask(first)).status).toBe(200);
    expect((await ask(second)).status).toBe(200);
    const { rows } = (await at.ask("ledger.totals", { by: ["key"], key: id })) as any;
    expect(rows).toMatchObject([{ calls: 2 }]);
    await until(async () => (await ask(first)).status === 401);
    expect((await ask(second)).status).toBe(200);
  });

  it("revocation is immediate", async () => {
    const key = await made();
    expect((await ask(key)).status).toBe(200);
    expect((await runTollgate(at, ["keys", "revoke", idOf(key)])).code).toBe(0);
    expect((await ask(key)).status).toBe(401);
  });
});

describe("limit headers that SDKs read", () => {
  it.each(["chat", "responses", "images"] as const)("OpenAI's, %s", async (which) => {
    const client = new OpenAI({
      baseURL: `${at.url}/v1`,
      apiKey: await quickly("requests=1/minute"),
      maxRetries: 0,
    });
    const create = {
      chat: () =>
        client.chat.completions
          .create({
            model: "up/model",
            max_tokens: 10,
            messages: [{ role: "user", content: "hi" }],
          })
          .withResponse(),
      responses: () =>
        client.responses
          .create({ model: "up/model", max_output_tokens: 20, input: "hi" })
          .withResponse(),
      images: () =>
        client.images
          .generate({ model: "up/draw", prompt: "a gate", response_format: "b64_json" })
          .withResponse(),
    }[which];
    const { response } = await create();
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("1");
    expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(response.headers.get("x-ratelimit-reset-requests")).toMatch(/\d/);
    expect(response.headers.get("x-request-id")).toBeTruthy();
    const refused = await create().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError);
    expect((refused as InstanceType<typeof OpenAI.RateLimitError>).code).toBe(
      "rate_limit_exceeded",
    );
  });

  it("Anthropic's", async () => {
    const client = new Anthropic({
      baseURL: at.url,
      apiKey: await quickly("requests=1/minute"),
      maxRetries: 0,
    });
    const create = () =>
      client.messages
        .create({ model: "up/model", max_tokens: 10, messages: [{ role: "user", content: "hi" }] })
        .withResponse();
    const began = Date.now();
    const { response } = await create();
    expect(response.headers.get("anthropic-ratelimit-requests-limit")).toBe("1");
    expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("0");
    const reset = response.headers.get("anthropic-ratelimit-requests-reset")!;
    expect(Date.parse(reset)).toBeGreaterThan(began - 1_000);
    const refused = await create().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Anthropic.RateLimitError);
    expect(
      (refused as InstanceType<typeof Anthropic.RateLimitError>).headers!.get("retry-after"),
    ).toMatch(/^\d+$/);
  });
});

describe("budgets", () => {
  /** Two responses at 300,000 and 3,000,000 nano-dollars: 0.0033 in total. */
  const EACH = 3_300_000;
  const worth = (answers: number) =>
    formatLimit({ unit: "nano_usd", max: EACH * answers, per: "day" });
  const budgeted = async (hold: string) => {
    await at.write(yaml(up.url, hold));
    await at.line((line) => line.msg === "reloaded" && (line["generation"] as number) > generation);
    generation = Number(((await at.ask("status")) as any).generation);
  };
  let generation = 1;

  it("expected: a rejection states the reserved and remaining amounts and a max_tokens that fits", async () => {
    const key = await quickly(worth(1.5));
    const first = await ask(key, { max_tokens: 200 });
    expect(first.status).toBe(200);
    await first.text();
    const refused = await ask(key, { max_tokens: 200 });
    expect(refused.status).toBe(429);
    const { error } = (await refused.json()) as any;
    expect(error.message).toMatch(/has \$0\.00165 left; this request would reserve \$0\.003\d+/);
    const fits = Number(/max_tokens: (\d+) the request would fit/.exec(error.message)![1]);
    expect((await ask(key, { max_tokens: fits + 1 })).status).toBe(429);
    expect((await ask(key, { max_tokens: fits })).status).toBe(200);
  });

  it("hard: a request that could exceed it is not sent, and a request without a limit gets one", async () => {
    await budgeted("hard");
    const key = await quickly("usd=0.062/day");
    // The worst case: 4,096 tokens at 15 dollars per million.
    expect((await ask(key, { max_tokens: undefined })).status).toBe(200);
    expect(up.requests.at(-1)!.json().max_tokens).toBe(4096);
    const tight = await quickly("usd=0.061/day");
    const before = up.requests.length;
    expect((await ask(tight, { max_tokens: undefined })).status).toBe(429);
    expect(up.requests.length).toBe(before);
    expect((await ask(tight, { max_tokens: 2_000 })).status).toBe(200);
  });

  it("soft: only a spent budget rejects", async () => {
    await budgeted("soft");
    const key = await quickly(worth(1.5));
    for (const status of [200, 200, 429]) {
      const answer = await ask(key, { max_tokens: 4_000 });
      await answer.text();
      expect(answer.status).toBe(status);
    }
  });

  it("a model without a price is rejected, and the YAML in the error adds one", async () => {
    await budgeted("expected");
    const key = await quickly(worth(1_000));
    const refused = await ask(key, { model: "up/strange:1" });
    expect(refused.status).toBe(429);
    const { error } = (await refused.json()) as any;
    expect(error.code).toBe("unpriced_model");
    const [, line] = /Add (models: \{.*\} \} \}) under providers\.up in gateway\.yaml/.exec(
      error.message,
    )!;
    const entry = line!.replaceAll('"…"', '"1.25"').replace(/^models: \{ (.*) \}$/, "$1");
    await at.write(yaml(up.url).replace("      model:", `      ${entry}\n      model:`));
    await at.line((l) => l.msg === "reloaded" && (l["generation"] as number) > generation);
    expect((await ask(key, { model: "up/strange:1" })).status).toBe(200);
    // A key without a budget was never rejected.
    expect((await ask(at.key, { model: "up/stranger" })).status).toBe(200);
  });
});
