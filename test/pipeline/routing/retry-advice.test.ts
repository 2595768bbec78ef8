// Retry advice of a rejection: headers, text, and body in each protocol have one value, for every
// kind of failure. An official SDK that follows them recovers from retryable ones, and stops
// immediately on others.
import Anthropic from "@anthropic-ai/sdk";
import * as fc from "fast-check";
import OpenAI from "openai";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineMiddleware, type ErrorKind, fail } from "tollgate/plugin";
import { jsonResponse, say, startGateway } from "tollgate/testing";
import { CLIENT_RETRIES } from "../../../src/model/client-retry.ts";
import { ERRORS } from "../../../src/model/error.ts";
import { parseError } from "../../../src/protocols/failure/parse-error.ts";
import { everyNth } from "../../kit/law-effort.ts";
import { root } from "../../kit/process/program.ts";

const KINDS = Object.keys(ERRORS) as ErrorKind[];
/** Kinds that a client may retry, listed independently by this test. */
const AGAIN = ["rate_limited", "overloaded", "timeout", "upstream", "unavailable"];

let left = 0;
let asked = 0;
/** Fails as a request's header orders, as often as configured. */
const failing = defineMiddleware({
  api: 1,
  name: "failing",
  summary: "Fails as it is told",
  sends: "nowhere",
  setup: () => ({
    admit(x) {
      const limits = [{ scope: "key:slow", unit: "requests", max: 1, per: "minute" } as const];
      x.identify(x.headers["x-limited"] ? { id: "slow", limits } : { id: "key" });
    },
    inspect(_request, x) {
      asked++;
      const said = x.headers["x-fail"];
      if (typeof said !== "string" || left-- <= 0) return;
      const { kind, ms } = JSON.parse(said) as { kind: ErrorKind; ms?: number };
      fail(kind, "It failed", ms === undefined ? {} : { retryAfterMs: ms });
    },
  }),
});

let at: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  at = await startGateway({
    plugins: { failing },
    upstream: {
      "GET /*": jsonResponse({ object: "list", data: [{ id: "m", object: "model" }] }),
      "POST /*": (one) => say("Hello").usage({ input: 7, output: 2 }).toResponse(one),
    },
    config: {
      store: "memory",
      response_headers: ["x-tollgate-attempts", "x-tollgate-provider"],
      frontends: [
        "chat-completions",
        "messages",
        "responses",
        "gemini",
        "embeddings",
        "completions",
        "moderations",
      ],
      middleware: ["failing", "limits"],
      providers: {
        up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1", api_key: "c" } },
      },
    },
  });
});
afterAll(() => at?.[Symbol.asyncDispose]());

const user = [{ role: "user", content: "Hi" }];
const PATHS: Readonly<Record<string, readonly [string, object]>> = {
  chat: ["/v1/chat/completions", { model: "up/m", messages: user }],
  "a streamed chat": ["/v1/chat/completions", { model: "up/m", messages: user, stream: true }],
  messages: ["/v1/messages", { model: "up/m", max_tokens: 9, messages: user }],
  responses: ["/v1/responses", { model: "up/m", input: "Hi" }],
  gemini: [
    "/v1beta/models/up%2Fm:generateContent",
    { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
  ],
  embeddings: ["/v1/embeddings", { model: "up/m", input: "Hi" }],
  completions: ["/v1/completions", { model: "up/m", prompt: "Hi" }],
  moderations: ["/v1/moderations", { model: "up/m", input: "Hi" }],
};

const post = (path: string, body: object, headers: object) =>
  fetch(`${at.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      authorization: "Bearer k",
      "x-api-key": "k",
      ...headers,
    },
    body: JSON.stringify(body),
  });

const WAITS = [undefined, 0, 1, 250, 1_001, 58_000, 60_001, 3_600_000, 1e12, -5];

describe.each(Object.entries(PATHS))("a rejection at %s", (_, [path, body]) => {
  it("states one retry time: seconds, milliseconds, x-should-retry, text, and details", async () => {
    const kinds = path === PATHS["chat"]![0] ? KINDS : KINDS.filter((kind) => kind !== "canceled");
    for (const [column, kind] of kinds.entries())
      for (const ms of everyNth(
        3,
        WAITS,
        column + Object.values(PATHS).findIndex((at) => at[0] === path),
      )) {
        left = 1;
        const res = await post(path, body, { "x-fail": JSON.stringify({ kind, ms }) });
        const text = await res.text();
        const known = ms !== undefined && ms >= 0;
        const may = AGAIN.includes(kind) || (kind === "conflict" && known);
        const wait = may ? Math.min(86_400_000, Math.max(1, known ? ms : 1_000)) : undefined;
        const told = {
          seconds: res.headers.get("retry-after"),
          ms: res.headers.get("retry-after-ms"),
          again: res.headers.get("x-should-retry"),
          text: /Retry after (\d+) s\./.exec(text)?.[1] ?? null,
          info: /"retryDelay":"([^"]*)"/.exec(text)?.[1] ?? null,
        };
        const s = wait === undefined ? null : String(Math.ceil(wait / 1_000));
        expect({ kind, given: ms, ...told }).toEqual({
          kind,
          given: ms,
          ms: wait === undefined ? null : String(wait),
          seconds: s,
          again: String(wait !== undefined && wait <= 60_000),
          text: s,
          info: path.includes("generateContent") && wait !== undefined ? `${wait / 1_000}s` : null,
        });
        // Anthropic has its own status for overload.
        if (!path.endsWith("/messages")) expect(res.status).toBe(ERRORS[kind][0]);
        // Nothing was sent, so no provider is named.
        expect([
          res.headers.get("x-tollgate-provider"),
          res.headers.get("x-tollgate-attempts"),
        ]).toEqual([null, "0"]);
      }
  });
});

it("by a limit of the gateway names no provider, no attempt, and one time", async () => {
  const [path, body] = PATHS["chat"]!;
  const first = await post(path, body, { "x-limited": "1" });
  expect([
    first.status,
    first.headers.get("x-tollgate-provider"),
    first.headers.get("x-tollgate-attempts"),
  ]).toEqual([200, "up", "1"]);
  await first.text();
  const res = await post(path, body, { "x-limited": "1" });
  const { error } = (await res.json()) as { error: { message: string; code: string } };
  expect([res.status, error.code]).toEqual([429, "rate_limit_exceeded"]);
  const s = Number(res.headers.get("retry-after"));
  expect(error.message).toBe(
    `The limit of 1 requests a minute (key:slow) is reached: 0 left. Retry after ${s} s.`,
  );
  expect(Math.ceil(Number(res.headers.get("retry-after-ms")) / 1_000)).toBe(s);
  expect(res.headers.get("x-should-retry")).toBe("true");
  expect([res.headers.get("x-tollgate-provider"), res.headers.get("x-tollgate-attempts")]).toEqual([
    null,
    "0",
  ]);
});

it("matches the expected table", () => {
  expect(Object.keys(CLIENT_RETRIES).sort()).toEqual([...KINDS].sort());
  const yes = Object.entries(CLIENT_RETRIES).flatMap(([kind, when]) =>
    when === "yes" ? [kind] : [],
  );
  expect(yes.sort()).toEqual([...AGAIN].sort());
});

describe("an official SDK", () => {
  const key = "k";
  const SDKS: Readonly<Record<string, (headers: Record<string, string>) => Promise<unknown>>> = {
    "openai chat": (headers) =>
      new OpenAI({ apiKey: key, baseURL: `${at.url}/v1` }).chat.completions.create(
        { model: "up/m", messages: [{ role: "user", content: "Hi" }] },
        { headers },
      ),
    "openai chat, streamed": async (headers) => {
      const stream = await new OpenAI({
        apiKey: key,
        baseURL: `${at.url}/v1`,
      }).chat.completions.create(
        { model: "up/m", messages: [{ role: "user", content: "Hi" }], stream: true },
        { headers },
      );
      for await (const _ of stream);
    },
    "openai responses": (headers) =>
      new OpenAI({ apiKey: key, baseURL: `${at.url}/v1` }).responses.create(
        { model: "up/m", input: "Hi" },
        { headers },
      ),
    anthropic: (headers) =>
      new Anthropic({ apiKey: key, baseURL: at.url }).messages.create(
        { model: "up/m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
        { headers },
      ),
  };

  it.each(Object.entries(SDKS))(
    "%s recovers from each retryable rejection, and sends other requests once",
    async (_, call) => {
      for (const kind of KINDS)
        for (const ms of [5, 61_000]) {
          left = 2;
          asked = 0;
          const outcome = await call({ "x-fail": JSON.stringify({ kind, ms }) }).then(
            () => "recovered",
            () => "gave up",
          );
          const may = ms <= 60_000 && (AGAIN.includes(kind) || kind === "conflict");
          expect([kind, ms, outcome, asked]).toEqual([
            kind,
            ms,
            may ? "recovered" : "gave up",
            may ? 3 : 1,
          ]);
        }
    },
  );
});

it("no message contains a handwritten retry time", () => {
  const words =
    /["'`][^"'`\n]*\b(try again|come again|ask again later|again in a (moment|minute)|retry after)\b/i;
  const files = globSync("{src,plugins/{frontends,middleware,stores}}/**/*.ts", {
    cwd: root,
  }).filter(
    (file) =>
      !/node_modules|^src\/(cli|config|gateway\/control|testing|model\/client-retry)|protocols\/failure/.test(
        file,
      ),
  );
  const said = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line) =>
        words.test(line) && !/^\s*(\/\/|\*|\/\*)/.test(line) ? [`${file}: ${line.trim()}`] : [],
      ),
  );
  expect(said).toEqual([]);
});

it("of a provider has the longer of header and sentence", () => {
  const wait = (message: string, headers: Record<string, string> = {}) =>
    parseError(429, headers, Buffer.from(JSON.stringify({ error: { message } }))).retryAfterMs;
  expect(wait("Rate limit reached. Please try again in 58s.", { "retry-after": "1" })).toBe(58_000);
  expect(wait("Please try again in 6m0.5s. Visit us.")).toBe(360_500);
  expect(wait("Please retry after 20 seconds.")).toBe(20_000);
  expect(wait("Try again in 250 ms", { "retry-after-ms": "900" })).toBe(900);
  expect(wait("Try again in 5 apples")).toBeUndefined();
  expect(wait("Try again in a moment")).toBeUndefined();
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom("try again in ", "1", ".", "m", "s", " ", "ms"),
        maxLength: 400,
      }),
      (text) => {
        const ms = wait(text);
        expect(ms === undefined || (Number.isInteger(ms) && ms >= 0 && ms <= 86_400_000)).toBe(
          true,
        );
      },
    ),
  );
});
