// Auth with an expiring token: a token that a provider rejects is renewed once for all calls that
// it fails, and each of them is sent again once. No call is sent a third time or has two rows, and
// no accepted call is sent again.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fail, type Auth, type AuthRejection, type Protocol } from "tollgate/plugin";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const ANSWER = { id: "u", model: "m", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" };

/** An account whose tokens expire on request, and a scheme that caches one. */
function account(of: { refuse?: (refusal: AuthRejection) => boolean; broken?: boolean } = {}) {
  let good = 1;
  let token = 1;
  const heard: AuthRejection[] = [];
  let fetched = 0;
  const auth: Auth<any> = {
    sign: () => ({ authorization: `Bearer ${token}` }),
    async renewToken(refusal) {
      heard.push(refusal);
      if (of.refuse?.(refusal) === false) return false;
      fetched++;
      await turnEventLoop(5);
      if (of.broken) fail("upstream_auth", "No token today.");
      token = good;
      return true;
    },
  };
  return {
    auth,
    heard,
    fetched: () => fetched,
    /** The current token has expired. */
    end: () => void good++,
    /** Whether it accepts this token. */
    lets: (authorization: string | undefined) => authorization === `Bearer ${good}`,
  };
}

const LANES: readonly (readonly [string, Protocol])[] = [
  ["passthrough", createToyProtocol()],
  ["translated", createToyProtocol("other")],
];

function upstream(lets: (authorization: string | undefined, n: number) => boolean, status = 401) {
  return startBackend((req, res) => {
    if (!lets(req.headers.authorization, req.n)) {
      res.writeHead(status, { "content-type": "application/json", "x-why": "expired" });
      return res.end('{"error":"The token has expired."}');
    }
    const stream = JSON.parse(req.body).stream === true;
    res.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    return res.end(`${JSON.stringify(ANSWER)}\n`);
  });
}

const provider = (base: string, auth: Auth<any>, protocol: Protocol = createToyProtocol()) => ({
  endpoints: [{ protocol, base, auth }],
});
const rows = (journal: readonly any[]) =>
  journal.filter((row) => row.do !== "progress").map((row) => row.state ?? row.do);

describe.each(LANES)("%s", (_lane, protocol) => {
  it.each([
    [401, false],
    [401, true],
    [403, false],
  ])("an expired token (%i) costs its call nothing, stream: %s", async (status, stream) => {
    const at = account();
    await using up = await upstream(at.lets, status);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base, at.auth, protocol) },
    });
    at.end();
    const res = await s.ask({ model: "p/m", text: "hi", stream });
    expect(await res.text()).toContain("Hello");
    expect(up.asked.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
    expect(up.asked[0]!.body).toBe(up.asked[1]!.body);
    expect(rows(s.journal)).toEqual(["reserve", "unpriced"]);
    expect(s.house.targetHealth.describeCooldowns()).toEqual([]);
    expect(at.heard).toHaveLength(1);
    expect(at.heard[0]!.headers["x-why"]).toBe("expired");
    expect([at.heard[0]!.status, String(at.heard[0]!.body)]).toEqual([
      status,
      '{"error":"The token has expired."}',
    ]);
  });
});

it("is fetched once, however many concurrent calls it fails", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 3 }),
      async (many, rounds) => {
        const at = account();
        await using up = await upstream(at.lets);
        await using s = await startTestServices({
          frontend: createToyProtocol(),
          providers: { p: provider(up.base, at.auth) },
        });
        for (let round = 1; round <= rounds; round++) {
          at.end();
          const answers = await Promise.all(
            Array.from({ length: many }, async () =>
              (await s.ask({ model: "p/m", text: "hi" })).text(),
            ),
          );
          expect(answers.every((text) => text.includes("Hello"))).toBe(true);
          expect(at.fetched()).toBe(round);
        }
        expect(rows(s.journal).filter((row) => row === "reserve")).toHaveLength(many * rounds);
        expect(rows(s.journal).filter((row) => row === "unpriced")).toHaveLength(many * rounds);
      },
    ),
    { numRuns: 8 },
  );
});

describe("a second rejection is final", () => {
  it("and the next candidate is called", async () => {
    const at = account();
    await using up = await upstream(() => false);
    await using other = await upstream(() => true);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base, at.auth), q: provider(other.base, "none") },
      models: { any: ["p/m", "q/m"] },
    });
    expect(await (await s.ask({ model: "any", text: "hi" })).text()).toContain("q/m");
    expect(up.asked).toHaveLength(2);
    expect(at.heard).toHaveLength(1);
    expect(rows(s.journal)).toEqual(["reserve", "void", "reserve", "unpriced"]);
  });

  it("and is the gateway's error, not the client's, if there is no other", async () => {
    const at = account();
    await using up = await upstream(() => false);
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base, at.auth) },
    });
    expect((await s.ask({ model: "p/m", text: "hi" })).status).toBe(502);
    expect(up.asked).toHaveLength(2);
    expect(rows(s.journal)).toEqual(["reserve", "void"]);
  });
});

it.each([400, 402, 404, 429, 500])("a %i is not renewed", async (status) => {
  const at = account();
  await using up = await upstream(() => false, status);
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base, at.auth) },
  });
  await (await s.ask({ model: "p/m", text: "hi" })).text();
  expect([up.asked.length, at.heard.length]).toEqual([1, 0]);
});

it("a token that is rejected for another reason is sent once, and no other call gets its response", async () => {
  const at = account({ refuse: ({ body }) => String(body).includes("expired") });
  await using up = await startBackend((req, res) => {
    const says = JSON.parse(req.body).text === "no" ? "Not yours." : "The token has expired.";
    const good = says !== "Not yours." && at.lets(req.headers.authorization);
    res.writeHead(good ? 200 : 401, { "content-type": "application/json" });
    res.end(JSON.stringify(good ? ANSWER : { error: says }));
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base, at.auth) },
  });
  at.end();
  const asked = ["no", "yes", "no", "yes"].map(async (text) => {
    const res = await s.ask({ model: "p/m", text });
    await res.text();
    return res.status;
  });
  expect(await Promise.all(asked)).toEqual([502, 200, 502, 200]);
  expect(at.fetched()).toBe(1);
});

it("without another token, every waiting call gets an error, and the credential is put in cooldown", async () => {
  const at = account({ broken: true });
  await using up = await upstream(() => false);
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base, at.auth) },
  });
  const statuses = await Promise.all(
    Array.from({ length: 5 }, async () => (await s.ask({ model: "p/m", text: "hi" })).status),
  );
  expect(statuses).toEqual([502, 502, 502, 502, 502]);
  expect(up.asked).toHaveLength(5);
  expect(rows(s.journal).filter((row) => row === "void")).toHaveLength(5);
  expect(s.house.targetHealth.describeCooldowns()).toHaveLength(1);
});

it("an accepted request is never sent again, whatever follows", async () => {
  const at = account();
  await using up = await startBackend((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(`${JSON.stringify({ id: "u", model: "m" })}\n${JSON.stringify({ say: "Hel" })}\n`);
    res.end(`${JSON.stringify({ error: "401: the token has expired" })}\n`);
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base, at.auth) },
  });
  expect(await (await s.ask({ model: "p/m", text: "hi", stream: true })).text()).toContain(
    "expired",
  );
  expect([up.asked.length, at.heard.length]).toEqual([1, 0]);
  expect(rows(s.journal)).toEqual(["reserve", "estimated"]);
});

it("a native endpoint's own requests are sent again in the same way", async () => {
  const at = account();
  await using up = await startBackend((req, res) => {
    const good = at.lets(req.headers.authorization);
    res.writeHead(good ? 200 : 401, { "content-type": "application/json" });
    res.end(good ? '{"say":"Hello"}' : '{"error":"The token has expired."}');
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      p: {
        endpoints: [
          {
            operation: "chat",
            base: up.base,
            auth: at.auth,
            async *run(_request, call) {
              const answer = await call.fetch("x", { method: "POST", body: "{}" });
              const { say } = (await answer.json()) as { say: string };
              yield { type: "start" };
              yield { type: "open", index: 0, block: { type: "text" } };
              yield { type: "delta", index: 0, text: say };
              yield { type: "close", index: 0 };
              yield { type: "usage", usage: { input: 1, output: 1 } };
              yield { type: "finish", reason: "stop" };
            },
          },
        ],
      },
    },
  });
  at.end();
  expect(await (await s.ask({ model: "p/m", text: "hi" })).text()).toContain("Hello");
  expect(up.asked.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
  expect(rows(s.journal)).toEqual(["reserve", "unpriced"]);
});
