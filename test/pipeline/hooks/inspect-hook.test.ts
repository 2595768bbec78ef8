// A hook that reads, rejects, or notes a request and changes nothing: the mode does not change.
import { describe, expect, it } from "vitest";
import { fail, type Hooks, type ModelRequest } from "tollgate/plugin";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { inAny } from "../../protocols/gemini/speech.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { CLIENTS, TARGETS } from "../protocol-pairs.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const ANSWER = { id: "u", model: "m", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" };
const answering = () =>
  startBackend((req, res) => {
    res.setHeader("content-type", "application/json");
    res.end(req.url!.includes("count") ? '{"tokens":3}' : JSON.stringify(ANSWER));
  });
const provider = (base: string, protocol = createToyProtocol()) => ({
  endpoints: [{ protocol, base, auth: "none" as const }],
});
const reserves = (journal: readonly any[]) => journal.filter((row) => row.do === "reserve");
const textOf = (request: ModelRequest): string =>
  request.operation === "chat" && request.turns[0]?.blocks[0]?.type === "text"
    ? request.turns[0].blocks[0].text
    : "";

describe.each([
  ["passthrough", createToyProtocol()],
  ["translated", createToyProtocol("other")],
] as const)("%s", (lane, protocol) => {
  it("reads the request, and the outgoing request is unchanged", async () => {
    const seen: string[] = [];
    const inspect: Hooks["inspect"] = async (request, x) => {
      await Promise.resolve();
      seen.push(textOf(request), x.model);
    };
    await using up = await answering();
    const asked = async (hooks: TestServicesOptions["hooks"]) => {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: provider(up.base, protocol) },
        ...(hooks && { hooks }),
      });
      const res = await s.ask({ big: 1, model: "p/m", text: "hi" });
      expect(res.status).toBe(200);
      expect(reserves(s.journal)[0].clientRequest.mode).toBe(lane);
    };
    await asked(undefined);
    await asked([{ inspect }]);
    expect(seen).toEqual(["hi", "p/m"]);
    expect(up.asked[1]!.body).toBe(up.asked[0]!.body);
  });

  it("reserves nothing and calls no provider for a rejected request", async () => {
    await using up = await answering();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base, protocol) },
      hooks: [{ inspect: () => fail("content_policy", "Not here.", { code: "blocked" }) }],
    });
    for (const stream of [false, true]) {
      const res = await s.ask({ model: "p/m", text: "hi", stream });
      expect([res.status, await res.json()]).toMatchObject([400, { error: "Not here." }]);
    }
    expect([s.journal, up.asked]).toEqual([[], []]);
  });
});

it("sees the result of the rewrite hooks, in any order of middleware", async () => {
  const seen: string[] = [];
  const inspect: Hooks = { inspect: (request) => void seen.push(textOf(request)) };
  const rewrite: Hooks = {
    rewrite: (request) =>
      request.operation === "chat"
        ? { ...request, turns: [{ role: "user", blocks: [{ type: "text", text: "rewritten" }] }] }
        : request,
  };
  await using up = await answering();
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base) },
    hooks: [inspect, rewrite, inspect],
  });
  await (await s.ask({ model: "p/m", text: "hi" })).text();
  expect(seen).toEqual(["rewritten", "rewritten"]);
  expect(JSON.parse(up.asked[0]!.body).text).toBe("rewritten");
});

it("runs once for any number of candidates, also for token counts", async () => {
  let runs = 0;
  await using bad = await startBackend((_req, res) => {
    res.statusCode = 503;
    res.end("{}");
  });
  await using up = await answering();
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { a: provider(bad.base), b: provider(bad.base), p: provider(up.base) },
    models: { any: ["a/m", "b/m", "p/m"] },
    hooks: [{ inspect: () => void runs++ }],
  });
  expect((await s.ask({ model: "any", text: "hi" })).status).toBe(200);
  expect(runs).toBe(1);
  await s.ask({ model: "p/m", text: "hi" }, { path: "/toy/count" });
  expect(runs).toBe(2);
});

it("can be restricted by models, but not by providers, which are not selected yet", async () => {
  let runs = 0;
  await using up = await answering();
  const of = (only: object): TestServicesOptions => ({
    frontend: createToyProtocol(),
    providers: { p: provider(up.base) },
    hooks: [{ inspect: () => void runs++, scope: only }],
  });
  await using s = await startTestServices(of({ models: ["p/a"] }));
  await s.ask({ model: "p/b", text: "hi" });
  expect(runs).toBe(0);
  await s.ask({ model: "p/a", text: "hi" });
  expect(runs).toBe(1);
  await expect(startTestServices(of({ providers: ["p"] }))).rejects.toThrow(
    /for.providers cannot limit it/,
  );
});

describe("a label", () => {
  it("is on every later row, and a key's own label does not change", async () => {
    await using up = await answering();
    await using s = await startTestServices({
      frontend: createToyProtocol(),
      providers: { p: provider(up.base) },
      identity: { labels: { team: "a" } },
      hooks: [
        {
          inspect(_request, x) {
            x.addLabel("verdict", "clean");
            x.addLabel("team", "mine");
          },
        },
      ],
    });
    await (await s.ask({ model: "p/m", text: "hi" })).text();
    expect(reserves(s.journal)[0].labels).toEqual({ team: "a", verdict: "clean" });
  });

  it("has a maximum length and a maximum number", async () => {
    await using up = await answering();
    const asked = async (inspect: NonNullable<Hooks["inspect"]>) => {
      await using s = await startTestServices({
        frontend: createToyProtocol(),
        providers: { p: provider(up.base) },
        hooks: [{ inspect }],
      });
      return (await s.ask({ model: "p/m", text: "hi" })).status;
    };
    const many = (n: number) =>
      asked((_request, x) => {
        for (let i = 0; i < n; i++) x.addLabel(`l${i}`, "x");
        x.addLabel("l0", "again");
      });
    expect([await many(32), await many(33)]).toEqual([200, 500]);
    const long = (n: number) => asked((_request, x) => x.addLabel("l", "x".repeat(n)));
    expect([await long(256), await long(257)]).toEqual([200, 500]);
    const name = (n: number) => asked((_request, x) => x.addLabel("x".repeat(n), ""));
    expect([await name(256), await name(257)]).toEqual([200, 500]);
    expect(await asked((_request, x) => x.addLabel("__proto__", "x"))).toBe(200);
  });
});

describe.each(Object.keys(CLIENTS).filter((id) => id !== "images"))(
  "unknown fields of a client of %s",
  (from) => {
    it("can read the common form of the request, and the client's own bytes are sent", async () => {
      const seen: ModelRequest[] = [];
      await using up = await startUpstream({
        "POST /*": (asked) =>
          inAny(say("Hello"), asked) ?? jsonResponse({ error: { message: "no" } }, 400),
      });
      await using s = await startTestServices({
        frontend: CLIENTS[from]!.protocol,
        providers: {
          p: {
            endpoints: [{ protocol: TARGETS[from]!, base: `${up.url}/v1`, auth: "none" as const }],
          },
        },
        hooks: [{ inspect: (request) => void seen.push(request) }],
      });
      const body = { model: "p/m", ...CLIENTS[from]!.least, x_unknown: [1, { a: "é" }] };
      expect((await s.ask(body)).status).toBe(200);
      expect(seen.map(textOf)).toEqual(["Hi"]);
      expect(seen[0]!.rest).toMatchObject({ x_unknown: [1, { a: "é" }] });
      const { model: _model, ...rest } = body;
      const sent = JSON.parse(up.requests[0]!.body.toString());
      // In one protocol the model is in the path.
      expect(sent).toMatchObject(from === "gemini" ? rest : { ...rest, model: "m" });
      expect(sent.model).toBe(from === "gemini" ? undefined : "m");
      expect(reserves(s.journal)[0].clientRequest.mode).toBe("passthrough");
    });
  },
);
