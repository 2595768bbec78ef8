import { describe, expect, it } from "vitest";
import type { Settle } from "tollgate/plugin";
import { fail } from "tollgate/plugin";
import { installTestClock } from "../kit/clock.ts";
import { waitUntilStable, turnEventLoop, until } from "../kit/wait.ts";
import { startBackend, startTestServices } from "../kit/test-services.ts";
import { createToyProtocol } from "./toy-protocol.ts";

const line = (o: object) => `${JSON.stringify(o)}\n`;
const HELLO = [
  line({ id: "up-1", model: "m", note: "kept" }),
  line({ say: "Hel" }),
  line({ say: "lo" }),
  line({ usage: { input: 3, output: 2 }, end: "stop" }),
];
const lines = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((l) => JSON.parse(l));
const settles = (journal: readonly any[]) =>
  journal.filter((c): c is Settle & { durable: boolean } => c.do === "settle");
const endpoint = (base: string, protocol = createToyProtocol(), more: object = {}) => ({
  endpoints: [
    { protocol, base, auth: { header: "x-key", prefix: "K ", field: "api_key" as never }, ...more },
  ],
});
const streaming = () =>
  startBackend((_req, res) => {
    res.writeHead(200, {
      "content-type": "text/event-stream",
      "x-toy-note": "seen",
      "set-cookie": "a=b",
    });
    for (const l of HELLO) res.write(l);
    res.end();
  });

describe.each([
  ["passthrough", createToyProtocol()],
  ["translated", createToyProtocol("other")],
] as const)("%s", (lane, protocol) => {
  it("streams, bills before the terminal event, and names the model by its provider", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true, unknown: 9 });
    expect(res.status).toBe(200);
    const got = lines(await res.text());
    expect(got.map((l) => l.say ?? "").join("")).toBe("Hello");
    expect(got.find((l) => l.model)?.model).toBe("p/m");
    expect(got.at(-1).end).toBe("stop");
    expect(JSON.parse(up.asked[0]!.body)).toMatchObject({ model: "m", unknown: 9 });
    expect(up.asked[0]!.headers["x-key"]).toBe("K secret-p");
    expect(up.asked[0]!.headers.authorization).toBeUndefined();
    expect(res.headers.get("set-cookie")).toBeNull();
    expect(res.headers.get("x-toy-note")).toBe(lane === "passthrough" ? "seen" : null);
    expect(s.journal.map((c) => c.do)).toEqual(["reserve", "settle"]);
    expect(settles(s.journal)[0]).toMatchObject({
      state: "unpriced",
      usage: { input: 3, output: 2 },
      upstreamId: "up-1",
      outcome: "ok",
    });
  });

  it("responds non-streaming", async () => {
    await using up = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({
          id: "up-1",
          model: "m",
          say: "Hello",
          usage: { input: 1, output: 1 },
          end: "stop",
        }),
      );
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const res = await s.ask({ model: "p/m", text: "hi" });
    expect(await res.json()).toMatchObject({
      model: "p/m",
      say: "Hello",
      usage: { input: 1, output: 1 },
    });
    expect(Number(res.headers.get("content-length"))).toBeGreaterThan(0);
    expect(settles(s.journal)).toHaveLength(1);
  });

  it("delays only the terminal event until the bill is durable", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
      settling: () => turnEventLoop(500),
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true });
    let early = "";
    for await (const chunk of res.body!) {
      const text = Buffer.from(chunk).toString();
      if (text.includes('"end"')) expect(settles(s.journal)[0]!.durable).toBe(true);
      else early += text;
    }
    expect(early).toContain("Hel");
  });

  it("tries the next candidate until content, and sends no error of the previous one", async () => {
    await using bad = await startBackend((_req, res) => {
      res.writeHead(503);
      res.end('{"error":"busy"}');
    });
    await using cut = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]);
      setTimeout(() => res.destroy(), 20);
    });
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        a: endpoint(bad.base, protocol),
        b: endpoint(cut.base, protocol),
        c: endpoint(up.base, protocol),
      },
      models: { any: ["a/m", "b/m", "c/m"] },
    });
    const res = await s.ask({ model: "any", text: "hi", stream: true });
    const got = lines(await res.text());
    expect(got.filter((l) => l.model)).toEqual([expect.objectContaining({ model: "c/m" })]);
    expect(settles(s.journal).map((c) => c.state)).toEqual(["void", "estimated", "unpriced"]);
    for (let i = 1; i < 5; i++)
      await (await s.ask({ model: "any", text: "hi", stream: true })).text();
    expect(s.house.targetHealth.describeCooldowns().map(({ state }) => state)).toEqual([
      "open",
      "open",
    ]);
  });

  it("a truncation after content is the protocol's own error, no other call, and an estimated row", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]! + HELLO[1]!);
      setTimeout(() => res.destroy(), 30);
    });
    await using other = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: endpoint(up.base, protocol), b: endpoint(other.base, protocol) },
      models: { any: ["a/m", "b/m"] },
    });
    const got = lines(await (await s.ask({ model: "any", text: "hi", stream: true })).text());
    expect(got.at(-1)).toMatchObject({ kind: "upstream" });
    expect(got.some((l) => l.end)).toBe(false);
    expect(other.asked).toHaveLength(0);
    expect(settles(s.journal).map((c) => c.state)).toEqual(["estimated"]);
  });

  it("an error inside the stream is sent once, under its own name, with one row", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]! + HELLO[1]!);
      setTimeout(() => res.write(line({ error: "broken" })), 20);
      res.on("close", () => res.end());
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true });
    const got = lines(await res.text());
    expect(got.filter((l) => l.error !== undefined)).toEqual([
      { error: "p: broken", kind: "upstream" },
    ]);
    expect(settles(s.journal).map((c) => c.outcome)).toEqual(["upstream"]);
    const errors = s.log.filter(({ level }) => level === "error");
    expect(errors).toMatchObject([
      { message: "response aborted", fields: { status: 200, outcome: "upstream_error" } },
    ]);
  });

  it("an error before content triggers a fallback, under its own name", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(line({ error: "broken" }));
      res.on("close", () => res.end());
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true });
    expect(res.status).toBe(502);
    expect(await res.json()).toMatchObject({
      error: expect.stringMatching(/^p: broken\. Retry after \d s\.$/),
      kind: "upstream",
    });
    expect(settles(s.journal).map((c) => c.outcome)).toEqual(["upstream"]);
  });

  it("a clean end without a finish is a truncation", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(HELLO[0]! + HELLO[1]!);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const got = lines(await (await s.ask({ model: "p/m", text: "hi", stream: true })).text());
    expect(got.at(-1)).toMatchObject({ error: "p: truncated" });
  });

  it("a client's disconnect ends the upstream call, and the row has what was sent", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]! + HELLO[1]!);
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    const away = new AbortController();
    const res = await s.ask({ model: "p/m", text: "hi", stream: true }, { signal: away.signal });
    await res.body!.getReader().read();
    away.abort();
    await until(() => settles(s.journal).length === 1 && up.asked[0]!.aborted);
    expect(settles(s.journal)[0]).toMatchObject({ state: "estimated", outcome: "canceled" });
  });

  it("missing usage is estimated", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(HELLO[0]! + HELLO[1]! + line({ end: "stop" }));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
    });
    await (await s.ask({ model: "p/m", text: "hi", stream: true })).text();
    const [row] = settles(s.journal);
    expect(row).toMatchObject({ state: "estimated", outcome: "ok" });
    expect(row!.usage.output).toBeGreaterThan(0);
  });

  it("a denied reserve calls no provider", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, protocol) },
      verdict: () => ({
        ok: false,
        retryAfterMs: 1500,
        denied: {
          scope: "key:k1",
          unit: "requests",
          max: 1,
          per: "minute",
          remaining: 0,
          resetsAt: Date.now() + 1500,
        },
      }),
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true });
    expect(res.status).toBe(429);
    expect(res.headers.get("retry-after")).toBe("2");
    expect(await res.json()).toMatchObject({ code: "rate_limit_exceeded" });
    expect(up.asked).toHaveLength(0);
  });
});

describe("the modes", () => {
  it("passthrough forwards bytes unchanged except for the model's name", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const raw =
      '{ "text":"hi",  "big": 9007199254740993, "model" : "p/m","stream":true, "n":1e400 }';
    const res = await fetch(`${s.url}/toy`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: raw,
    });
    await res.text();
    expect(up.asked[0]!.body).toBe(raw.replace('"p/m"', '"m"'));
  });

  it("a frontend's edits apply in both modes, and unedited bytes are unchanged", async () => {
    await using up = await streaming();
    for (const protocol of [createToyProtocol(), createToyProtocol("other")]) {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base, protocol) },
        read: (_x, body) => ({
          model: body["model"] as string,
          stream: true,
          edits: { text: "edited", added: 1 },
        }),
        hooks: [{ prepare: (out) => out.set("late", true) }],
      });
      await (await s.ask({ model: "p/m", text: "hi", stream: true, big: 1 })).text();
      expect(JSON.parse(up.asked.at(-1)!.body)).toMatchObject({
        text: "edited",
        added: 1,
        late: true,
        big: 1,
      });
    }
  });

  it("names that select a destination are never sent", async () => {
    await using up = await streaming();
    for (const protocol of [createToyProtocol(), createToyProtocol("other")]) {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base, protocol) },
      });
      await (
        await s.ask({
          model: "p/m",
          text: "hi",
          stream: true,
          api_base: "http://evil",
          api_key: "k",
        })
      ).text();
      expect(up.asked.at(-1)!.body).not.toMatch(/api_base|api_key/);
    }
  });

  it("an event hook disables passthrough and sees every event; another provider keeps passthrough", async () => {
    await using up = await streaming();
    const seen: string[] = [];
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base), q: endpoint(up.base) },
      hooks: [
        { scope: { providers: ["p"] }, event: (_c, next) => (e) => (seen.push(e.type), next(e)) },
      ],
    });
    const p = lines(await (await s.ask({ model: "p/m", text: "hi", stream: true })).text());
    expect(seen).toEqual(["start", "open", "delta", "delta", "usage", "close", "finish"]);
    expect(p[0].note).toBeUndefined();
    const q = lines(await (await s.ask({ model: "q/m", text: "hi", stream: true })).text());
    expect(q[0].note).toBe("kept");
  });

  it("a warning is sent before the first byte, and strict makes it a 400 that costs nothing", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, createToyProtocol("other", { loses: "top_k" })) },
    });
    const res = await s.ask({ model: "p/m", text: "hi", stream: true });
    await res.text();
    expect(res.headers.get("x-tollgate-warnings")).toBe("toy_cannot;field=top_k");
    const strict = await s.ask(
      { model: "p/m", text: "hi" },
      { headers: { "x-tollgate-strict": "true" } },
    );
    expect(strict.status).toBe(400);
    expect(up.asked).toHaveLength(1);
    expect(s.journal.filter((c) => c.do === "reserve")).toHaveLength(1);
  });

  it("the prepare hook is last in both modes", async () => {
    await using up = await streaming();
    for (const protocol of [createToyProtocol(), createToyProtocol("other")]) {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base, protocol) },
        hooks: [{ prepare: (out) => (out.set("store", false), out.setHeader("x-extra", "1")) }],
      });
      await (await s.ask({ model: "p/m", text: "hi", stream: true, store: true })).text();
      expect(JSON.parse(up.asked.at(-1)!.body).store).toBe(false);
      expect(up.asked.at(-1)!.headers["x-extra"]).toBe("1");
    }
  });

  it("a native endpoint runs, streaming and non-streaming", async () => {
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        p: {
          endpoints: [
            {
              operation: "chat",
              async *run(r) {
                yield { type: "start", id: "n1" };
                yield { type: "open", index: 0, block: { type: "text" } };
                yield { type: "delta", index: 0, text: `to ${r.model}` };
                yield { type: "close", index: 0 };
                yield { type: "usage", usage: { input: 1, output: 2 } };
                yield { type: "finish", reason: "stop" };
              },
            },
          ],
        },
      },
    });
    expect(await (await s.ask({ model: "p/m", text: "x" })).json()).toMatchObject({
      say: "to p/m",
      usage: { output: 2 },
    });
    const got = lines(await (await s.ask({ model: "p/m", text: "x", stream: true })).text());
    expect(got.at(-1)).toMatchObject({ end: "stop", usage: { input: 1, output: 2 } });
  });

  it("a native endpoint produces no more than a slow client reads, and continues when it reads again", async () => {
    let made = 0;
    let ended = false;
    const piece = "x".repeat(64 * 1024);
    const most = 2_000;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      bounds: { responseBytes: 2 * most * piece.length },
      room: 2 * most * piece.length,
      providers: {
        p: {
          endpoints: [
            {
              operation: "chat",
              async *run() {
                try {
                  yield { type: "start" };
                  yield { type: "open", index: 0, block: { type: "text" } };
                  for (; made < most; made++) yield { type: "delta", index: 0, text: piece };
                  yield { type: "close", index: 0 };
                  yield { type: "usage", usage: { input: 1, output: 2 } };
                  yield { type: "finish", reason: "stop" };
                } finally {
                  ended = true;
                }
              },
            },
          ],
        },
      },
    });
    const still = () => waitUntilStable(() => made);
    const slow = await s.ask({ model: "p/m", text: "x", stream: true });
    const reader = slow.body!.getReader();
    await reader.read();
    // Sockets and their two ends buffer a few megabytes, and the response has 128.
    const held = await still();
    expect(held).toBeLessThan(most / 4);
    let bytes = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read())
      bytes += part.value.length;
    expect(made).toBe(most);
    expect(bytes).toBeGreaterThan((most - 1) * piece.length);

    [made, ended] = [0, false];
    const gone = new AbortController();
    await s.ask({ model: "p/m", text: "x", stream: true }, { signal: gone.signal });
    expect(await still()).toBeLessThan(most / 4);
    gone.abort();
    await until(() => ended && settles(s.journal).length === 2);
    expect(made).toBeLessThan(most / 4);
    expect(settles(s.journal)[1]).toMatchObject({ state: "estimated", outcome: "canceled" });
  });

  it("a provider that only streams serves a non-streaming client, and vice versa", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, createToyProtocol(), { streaming: "always" }) },
    });
    expect(await (await s.ask({ model: "p/m", text: "x" })).json()).toMatchObject({ say: "Hello" });
    expect(JSON.parse(up.asked[0]!.body).stream).toBe(true);
    await using json = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ say: "whole", usage: { input: 1, output: 1 }, end: "stop" }));
    });
    await using t = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(json.base, createToyProtocol(), { streaming: "never" }) },
    });
    const got = lines(await (await t.ask({ model: "p/m", text: "x", stream: true })).text());
    expect(got.map((l) => l.say ?? "").join("")).toBe("whole");
  });
});

describe("errors", () => {
  it("the upstream's own message is forwarded in passthrough mode, with masked secrets", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(422, { "content-type": "application/json" });
      res.end(JSON.stringify({ error: "bad field, key secret-p", extra: [1] }));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    s.house.mask.add(["secret-p-is-long"]);
    const res = await s.ask({ model: "p/m", text: "x" });
    expect(res.status).toBe(422);
    expect(await res.json()).toMatchObject({ extra: [1] });
    expect(settles(s.journal)[0]).toMatchObject({ state: "void" });
  });

  it("a failure of the gateway's key is never the client's 401", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(401, { "content-type": "application/json" });
      res.end("{}");
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    expect((await s.ask({ model: "p/m", text: "x" })).status).toBe(502);
  });

  it("a redirect is not followed", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(302, { location: "http://127.0.0.1:1/" });
      res.end();
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    expect((await s.ask({ model: "p/m", text: "x" })).status).toBe(502);
  });

  it.each([
    ["not json", "{", 400, "invalid_json"],
    ["twice", '{"model":"p/m","text":"x","model":"q/m"}', 400, "duplicate_key"],
    ["escaped", '{"mod\\u0065l":"p/m","text":"x"}', 400, "escaped_key"],
    ["another case", '{"model":"p/m","Model":"q/m","text":"x"}', 400, "ambiguous_key"],
    ["schema", '{"model":"p/m"}', 400, "invalid_request"],
    ["nobody", '{"model":"zzz/m","text":"x"}', 404, "model_not_found"],
    ["spaces", '{"model":"p/ m","text":"x"}', 400, "invalid_model"],
  ])("%s", async (_name, body, status, code) => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base), q: endpoint(up.base) },
    });
    const res = await fetch(`${s.url}/toy`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(res.status).toBe(status);
    expect(await res.json()).toMatchObject({ code });
    expect(up.asked).toHaveLength(0);
  });

  it("an unknown exception is a 500 with a fixed text, whatever it contains", async () => {
    for (const hook of ["admit", "prepare", "charge", "rewrite", "route"] as const) {
      await using up = await streaming();
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base) },
        hooks: [
          {
            [hook]: () => {
              throw Object.assign(new Error("secret words"), {
                status: 200,
                headers: { "x-leak": "1" },
              });
            },
          },
        ],
      });
      const res = await s.ask({ model: "p/m", text: "x" });
      expect(res.status).toBe(500);
      expect(res.headers.get("x-leak")).toBeNull();
      expect(await res.text()).not.toContain("secret words");
    }
  });

  it("a second next() is rejected: the host owns retries", async () => {
    await using up = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ say: "x", end: "stop" }));
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [{ attempt: async (_c, next) => (await next(), next()) }],
    });
    expect((await s.ask({ model: "p/m", text: "x" })).status).toBe(500);
    expect(up.asked).toHaveLength(1);
  });

  it("an unknown path is a 404 that names it, and a wrong method is a 405", async () => {
    await using s = await startTestServices({ frontend: createToyProtocol(), providers: {} });
    const res = await fetch(`${s.url}/nope`);
    expect(res.status).toBe(404);
    expect(await res.text()).toContain("Unknown route GET /nope");
    expect((await fetch(`${s.url}/toy`)).status).toBe(405);
    expect((await fetch(`${s.url}/healthz`)).status).toBe(200);
  });
});

describe("an attempt hook", () => {
  it("may reject after the upstream's headers, before content is sent", async () => {
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          attempt: async (_c, next) => {
            const reply = await next();
            return reply.headers["x-toy-note"] === "other" ? reply : fail("attestation", "no");
          },
        },
      ],
    });
    const res = await s.ask({ model: "p/m", text: "x", stream: true });
    expect(res.status).toBe(502);
    expect(settles(s.journal)).toHaveLength(1);
  });

  it("a recorded response is replayed in either mode without a ledger entry", async () => {
    await using up = await streaming();
    const kept = new Map<string, any>();
    for (const protocol of [createToyProtocol(), createToyProtocol("other")]) {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: endpoint(up.base, protocol) },
        hooks: [
          {
            attempt: async (c, next) => {
              if (kept.has(c.id)) return kept.get(c.id);
              const reply = await next();
              void reply.recordResponse(1 << 20).then((r) => r && kept.set(c.id, r));
              return reply;
            },
          },
        ],
      });
      const first = await (await s.ask({ model: "p/m", text: "x", stream: true })).text();
      const rows = s.journal.length;
      const again = await (await s.ask({ model: "p/m", text: "x", stream: true })).text();
      expect(again).toBe(first);
      expect(s.journal.length).toBe(rows);
    }
  });
});

describe("a token count", () => {
  it("calls a provider that can count, and costs nothing", async () => {
    await using up = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end('{"tokens":7}');
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const res = await s.ask({ model: "p/m", text: "x" }, { path: "/toy/count" });
    expect(await res.json()).toEqual({ tokens: 7 });
    expect(up.asked[0]!.url).toBe("/toy/count");
    expect(s.journal).toMatchObject([
      { do: "reserve", claims: [], holdNano: 0n, price: null },
      { do: "settle", state: "exact", usage: {}, costNano: 0n, outcome: "ok" },
    ]);
  });

  it("counts as a request: it takes one from rate and concurrency limits, and no tokens or money", async () => {
    await using up = await startBackend((_req, res) => {
      res.setHeader("content-type", "application/json");
      res.end('{"tokens":7}');
    });
    const units = ["requests", "concurrent", "tokens", "input", "output", "nano_usd"] as const;
    let left = 2;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
      hooks: [
        {
          charge: () => ({
            limits: units.map((unit) => ({ scope: "k", unit, max: 2n, per: "minute" as const })),
          }),
        },
      ],
      verdict: ({ claims }) =>
        left-- > 0
          ? { ok: true }
          : { ok: false, denied: { ...claims[0]!, remaining: 0n, resetsAt: 0 }, retryAfterMs: 9 },
    });
    const ask = () => s.ask({ model: "p/m", text: "x" }, { path: "/toy/count" });
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([
      200, 200, 429,
    ]);
    expect(up.asked).toHaveLength(2);
    const reserved = s.journal.filter((c) => c.do === "reserve");
    for (const { claims } of reserved)
      expect(claims.map(({ unit, take }) => [unit, take])).toEqual([
        ["requests", 1n],
        ["concurrent", 1n],
      ]);
    expect(s.journal.filter((c) => c.do === "settle")).toHaveLength(2);
  });

  it("that fails is settled at zero", async () => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(503, { "content-type": "application/json" });
      res.end("{}");
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base) },
    });
    const { status } = await s.ask({ model: "p/m", text: "x" }, { path: "/toy/count" });
    expect(status).toBeGreaterThanOrEqual(500);
    expect(s.journal.at(-1)).toMatchObject({ do: "settle", state: "void", costNano: 0n });
  });

  it("is estimated if no provider can count, with a warning", async () => {
    await using up = await streaming();
    const mute = createToyProtocol("other");
    delete (mute.client as { decodeCount?: unknown }).decodeCount;
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: endpoint(up.base, mute) },
    });
    const res = await s.ask({ model: "p/m", text: "x".repeat(300) }, { path: "/toy/count" });
    expect(((await res.json()) as { tokens: number }).tokens).toBeGreaterThan(90);
    expect(res.headers.get("x-tollgate-estimated")).toBe("input_tokens");
    expect(up.asked).toHaveLength(0);
  });
});

describe("headers that are sent early", () => {
  it("follow ten seconds without content, with pings, and another candidate may still respond", async () => {
    const { skip } = installTestClock();
    const gone = Promise.withResolvers<void>();
    await using slow = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]);
      void gone.promise.then(() => res.destroy());
    });
    await using lossy = await streaming();
    await using up = await streaming();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: {
        a: endpoint(slow.base),
        b: endpoint(lossy.base, createToyProtocol("other", { loses: "top_k" })),
        c: endpoint(up.base),
      },
      models: { any: ["a/m", "b/m", "c/m"] },
    });
    const asking = s.ask({ model: "any", text: "hi", stream: true });
    await until(() => slow.asked.length === 1);
    skip(4_000);
    expect(await Promise.race([asking, turnEventLoop()])).toBeUndefined();
    skip(6_500);
    const res = await asking;
    expect(res.status).toBe(200);
    gone.resolve();
    const got = lines(await res.text());
    expect(got.filter((l) => l.model)).toEqual([expect.objectContaining({ model: "c/m" })]);
    expect(got.at(-1).end).toBe("stop");
    // b would have lost a field that the headers did not report.
    expect(lossy.asked).toHaveLength(0);
  });

  it("without another candidate, the stream has an error in its own format", async () => {
    const { skip } = installTestClock();
    const gone = Promise.withResolvers<void>();
    await using slow = await startBackend((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(HELLO[0]);
      void gone.promise.then(() => res.destroy());
    });
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { a: endpoint(slow.base) },
    });
    const asking = s.ask({ model: "a/m", text: "hi", stream: true });
    await until(() => slow.asked.length === 1);
    skip(10_700);
    const res = await asking;
    gone.resolve();
    expect(res.status).toBe(200);
    expect(lines(await res.text())).toEqual([expect.objectContaining({ kind: "upstream" })]);
    expect(settles(s.journal)).toHaveLength(1);
  });
});
