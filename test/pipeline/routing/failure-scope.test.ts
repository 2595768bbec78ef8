// The scope of a failure: no request of one key affects another key's routing, unless upstream made
// a machine-readable statement about the account or the target. Statements reserved to the host
// cannot be made by others.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fail, createFault, type ErrorKind, type Fault, type JsonObject } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { turnEventLoop } from "../../kit/wait.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const endpoint = (base: string, protocol: ReturnType<typeof createToyProtocol>) => ({
  endpoints: [
    { protocol, base, auth: { header: "x-key", prefix: "K ", field: "api_key" as never } },
  ],
});
const LINE = JSON.stringify({
  id: "u",
  model: "m",
  say: "Hello",
  usage: { input: 1, output: 1 },
  end: "stop",
});
const good = () =>
  startBackend((_req, res) => {
    res.setHeader("content-type", "application/json");
    res.end(LINE);
  });

/** A codec that decodes each error as the test states. */
const saying = (fault: () => Fault) => {
  const protocol = createToyProtocol("other");
  return { ...protocol, client: { ...protocol.client!, decodeFault: fault } };
};
/** A target that fails so often is in cooldown, whatever the kind of failure is. */
const IN_A_ROW = 5;
const refusing = () =>
  startBackend((_req, res) => {
    res.writeHead(500, { "content-type": "application/json" });
    res.end("{}");
  });

describe("a fault set by an upstream, a codec, or a plugin", () => {
  /** Values that the host writes or once wrote there, and any others. */
  const bag = fc.oneof(
    fc.constantFrom<JsonObject>(
      { own: true },
      { caller: true },
      { who: "caller" },
      { blame: "caller" },
    ),
    fc.dictionary(fc.string({ maxLength: 8 }), fc.constantFrom(true, "caller", 1), { maxKeys: 3 }),
  ) as fc.Arbitrary<JsonObject>;
  const code = fc.constantFrom(undefined, "client_timeout", "canceled", "rate_limit_exceeded", "x");
  const kind = fc.constantFrom<ErrorKind>(
    "rate_limited",
    "overloaded",
    "timeout",
    "upstream",
    "upstream_auth",
  );

  it("disables neither fallback nor cooldown", async () => {
    await using bad = await refusing();
    await using up = await good();
    await fc.assert(
      fc.asyncProperty(kind, code, bag, async (kind, code, details) => {
        const said: Fault = { kind, message: "No.", details, ...(code && { code }) };
        await using s = await startTestServices({
          frontend: createToyProtocol(),
          providers: {
            a: endpoint(
              bad.base,
              saying(() => said),
            ),
            b: endpoint(up.base, createToyProtocol("other")),
          },
          models: { any: ["a/m", "b/m"] },
        });
        for (let i = 0; i < IN_A_ROW; i++) {
          const answer = await s.ask({ model: "any", text: "hi" });
          expect(await answer.json()).toMatchObject({ model: "b/m" });
        }
        expect(s.house.targetHealth.describeCooldowns()).toHaveLength(1);
      }),
      { numRuns: trialCount(25) },
    );
  });
});

describe("an unreadable response", () => {
  const lane = fc.constantFrom("passthrough", "translated");
  const after = async (body: string, type: string, of: string, asks: number) => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": type });
      res.end(body);
    });
    const into = of === "passthrough" ? chatCompletions() : messages();
    await using s = await startTestServices({
      frontend: chatCompletions(),
      providers: { a: { endpoints: [{ protocol: into, base: up.base, auth: "none" }] } },
      bounds: { responseBytes: 1 << 16 },
    });
    const least = { model: "a/m", messages: [{ role: "user", content: "Hi" }] };
    const stream = type === "text/event-stream";
    for (let i = 0; i < asks; i++) await (await s.ask({ ...least, stream })).text().catch(() => "");
    await turnEventLoop();
    return s.house.targetHealth.describeCooldowns().map(({ state }) => state);
  };

  it("is a failure of its target: several in a row open its circuit breaker, one does not", async () => {
    const garbage = fc.constantFrom(
      ["\0\0\0", "text/event-stream"],
      ["{nothing", "application/json"],
      ["<html>", "text/html"],
      ["", "application/json"],
    );
    await fc.assert(
      fc.asyncProperty(garbage, lane, async ([body, type], of) => {
        expect(await after(body!, type!, of, IN_A_ROW - 1)).toEqual([]);
        expect(await after(body!, type!, of, IN_A_ROW)).toEqual(["open"]);
      }),
      { numRuns: 8 },
    );
  });

  it("is no failure of its target if it exceeds the gateway's size limit", async () => {
    const text = "Hello".repeat(30_000);
    const much = { type: "message", role: "assistant", content: [{ type: "text", text }] };
    expect(
      await after(JSON.stringify(much), "application/json", "translated", IN_A_ROW + 1),
    ).toEqual([]);
  });
});

describe("a target stays available", () => {
  const unmoved = async (of: Omit<TestServicesOptions, "frontend">, ask: object, headers = {}) => {
    await using s = await startTestServices({ frontend: createToyProtocol(), ...of });
    const answer = await s.ask({ model: "a/m", text: "hi", ...ask }, { headers });
    const text = await answer.text().catch(() => "");
    await turnEventLoop();
    expect(s.house.targetHealth.describeCooldowns()).toEqual([]);
    return { status: answer.status, text };
  };

  it.each(["rate_limited", "overloaded", "upstream_auth", "upstream"] as const)(
    "after a hook that reports %s",
    async (kind) => {
      await using up = await good();
      const providers = { a: endpoint(up.base, createToyProtocol("other")) };
      for (const hooks of [
        [{ prepare: () => fail(kind, "No.") }],
        [{ attempt: () => fail(kind, "No.") }],
        [
          {
            attempt: async (_: unknown, next: () => Promise<never>) => (
              await next(),
              fail(kind, "No.")
            ),
          },
        ],
        [{ charge: () => fail(kind, "No.") }],
      ] as never[])
        expect((await unmoved({ providers, hooks }, {})).status).toBeGreaterThanOrEqual(400);
    },
  );

  it.each(["passthrough", "translated"])("after one unreadable response, %s", async (lane) => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end('{"error":"the model made no sense of this"}\n');
    });
    const providers = {
      a: endpoint(up.base, createToyProtocol(lane === "passthrough" ? "toy" : "other")),
    };
    expect((await unmoved({ providers }, { stream: true })).text).toContain("a: the model");
  });

  it("after a client that disconnects, before the response and during it", async () => {
    await using up = await startBackend((req, res) => {
      if (!req.body.includes("begin")) return;
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`${JSON.stringify({ id: "u" })}\n${JSON.stringify({ say: "Hel" })}\n`);
    });
    const providers = { a: endpoint(up.base, createToyProtocol("other")) };
    const headers = { "x-stainless-timeout": "1" };
    for (const text of ["hi", "begin"])
      expect((await unmoved({ providers }, { stream: true, text }, headers)).text).toContain(
        "within this client's time limit",
      );
  });

  it.each(["toy", "other"])(
    "if the gateway's memory limit is reached, with the mode %s, and no other candidate is called",
    async (protocol) => {
      await using up = await startBackend((_req, res) => {
        res.setHeader("content-type", "application/json");
        res.end(LINE.replace("Hello", "Hello".repeat(500_000)));
      });
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: {
          a: endpoint(up.base, createToyProtocol(protocol)),
          b: endpoint(up.base, createToyProtocol(protocol)),
        },
        models: { any: ["a/m", "b/m"] },
        room: 100_000,
      });
      const answer = await s.ask({ model: "any", text: "hi" });
      expect(answer.headers.get("x-tollgate-provider")).toBeNull();
      expect(await answer.json()).toMatchObject({
        error: expect.stringMatching(/^The gateway's buffer memory/),
        code: "gateway_busy",
      });
      expect(s.house.targetHealth.describeCooldowns()).toEqual([]);
      expect(up.asked).toHaveLength(1);
    },
  );

  it("after a caller's own limit, and no other candidate is called", async () => {
    await using up = await good();
    const providers = {
      a: endpoint(up.base, createToyProtocol("other")),
      b: endpoint(up.base, createToyProtocol("other")),
    };
    const denied = { scope: "key", unit: "requests", per: "minute", max: 1, left: 0, resetsAt: 0 };
    const verdict = () => ({ ok: false, denied, retryAfterMs: 1000 }) as never;
    const { status, text } = await unmoved(
      { providers, verdict, models: { any: ["a/m", "b/m"] } },
      { model: "any" },
    );
    expect(status).toBe(429);
    expect(text).not.toContain("own");
    expect(up.asked).toEqual([]);
  });
});

it("and a promise that a hook rejects with a fault keeps its message", async () => {
  await using up = await good();
  const told = { code: "not_today", param: "text", details: { until: "noon" } };
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { a: endpoint(up.base, createToyProtocol()) },
    hooks: [{ attempt: () => Promise.reject(createFault("forbidden", "Not today.", told)) }],
  });
  const answer = await s.ask({ model: "a/m", text: "hi" });
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ error: "Not today.", code: "not_today" });
  expect(up.asked).toEqual([]);
});
