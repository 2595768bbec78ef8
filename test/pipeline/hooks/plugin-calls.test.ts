// Subrequests of plugins on behalf of a client's request: its key pays, its limits and privacy
// apply, and they end with it.
import { describe, expect, it } from "vitest";
import {
  defineFrontend,
  defineMiddleware,
  fail,
  type SubrequestResult,
  type RequestHead,
  type Context,
} from "tollgate/plugin";
import { getFault } from "../../../src/model/error.ts";
import { startGateway, say, scriptedModel, type StartedGateway } from "tollgate/testing";

const CHAT = "/v1/chat/completions";
const PROVIDERS = `providers:
  up: { use: openai-compatible, with: { base_url: "\${env:UPSTREAM}/v1", api_key: "\${env:UPKEY}" }, models: { model: { price: { input: "1", output: "2" } } } }
`;

interface Judging {
  readonly heard: SubrequestResult[];
  readonly failed: unknown[];
}

/** Sends subrequests in `inspect`, as many as configured. */
const judge = (
  name: string,
  of: Judging,
  how: { times?: number; pass?: boolean; body?: object } = {},
) =>
  defineMiddleware({
    api: 1,
    name,
    summary: "Asks a model whether this may pass",
    sends: "nowhere",
    setup: (_options, ctx) => ({
      async inspect(_request, x) {
        for (let i = 0; i < (how.times ?? 1); i++) {
          try {
            of.heard.push(await asks(ctx, x, how.body));
          } catch (problem) {
            of.failed.push(problem);
            if (!how.pass) throw problem;
          }
        }
      },
    }),
  });

const asks = (ctx: Context, as: RequestHead, more: object = {}) =>
  ctx.sendSubrequest(
    {
      path: CHAT,
      body: { model: "up/model", messages: [{ role: "user", content: "May it?" }], ...more },
    },
    { parentRequest: as },
  );

/** Admits every client, with the configured rights. */
const door = (limits: readonly object[] = [], more: object = {}) =>
  defineMiddleware({
    api: 1,
    name: "door",
    summary: "Lets everybody in",
    sends: "nowhere",
    setup: () => ({
      admit: (x) => x.identify({ id: "client", limits: limits as never, ...more }),
    }),
  });

const started = (
  plugins: readonly ReturnType<typeof judge>[],
  store = "",
): Promise<StartedGateway> =>
  startGateway({
    config: `${store}frontends: [chat-completions]\nmiddleware: [${plugins.map(({ name }) => name).join(", ")}]\n${PROVIDERS}`,
    plugins: Object.fromEntries(plugins.map((each) => [each.name, each])),
    upstream: scriptedModel(say("Yes"), ["model"]),
    env: { UPKEY: "sk-up" },
  });

const reserves = ({ storeCommands }: StartedGateway) =>
  storeCommands.flatMap((row) => (row.do === "reserve" ? [row] : []));

describe("ctx.sendSubrequest", () => {
  it("responds as to a client, and each call has its own row that names its parent", async () => {
    const of: Judging = { heard: [], failed: [] };
    await using at = await started([door(), judge("judge", of, { times: 2 })]);
    expect(await at.ask("up/model", "hello")).toMatchObject({ status: 200, text: "Yes" });
    expect(of.failed).toEqual([]);
    expect(of.heard.map(({ body }) => (body as any).choices[0].message.content)).toEqual([
      "Yes",
      "Yes",
    ]);
    const rows = reserves(at);
    const parent = rows.at(-1)!.request;
    expect(
      rows.map(({ key, labels, request }) => [
        key,
        labels?.["parent"],
        labels?.["requested_by_plugin"],
        request,
      ]),
    ).toEqual([
      ["client", parent, "middleware.judge", of.heard[0]!.id],
      ["client", parent, "middleware.judge", of.heard[1]!.id],
      ["client", undefined, undefined, parent],
    ]);
    // Every upstream call is billed once, and nothing else is.
    const posts = at.upstream.requests.filter(
      ({ method, path }) => method === "POST" && path.endsWith("completions"),
    );
    expect(posts).toHaveLength(3);
    expect(at.calls.map(({ state }) => state)).toEqual(["exact", "exact", "exact"]);
    const [first] = at.calls;
    expect(first!.costNano).toBeGreaterThan(0n);
    expect(of.heard[0]!.calls[0]).toMatchObject({ costNano: first!.costNano, usage: first!.usage });
  });

  it("runs no hook of the calling plugin, and all hooks of others", async () => {
    const of: Judging = { heard: [], failed: [] };
    const seen: string[] = [];
    const watching = defineMiddleware({
      api: 1,
      name: "watching",
      summary: "Asks, and watches responses",
      sends: "nowhere",
      setup: (_options, ctx) => ({
        async inspect(_request, x) {
          of.heard.push(await asks(ctx, x));
        },
        watch: (call) => (event) =>
          void (event.type === "finish" && seen.push(`watching ${call.exchange.id}`)),
      }),
    });
    // An event hook, which passes every response through the hooks as events.
    const other = defineMiddleware({
      api: 1,
      name: "other",
      summary: "Passes every event on",
      sends: "nowhere",
      setup: () => ({
        event: (call, next) => (event) => {
          if (event.type === "finish") seen.push(`other ${call.exchange.id}`);
          next(event);
        },
      }),
    });
    await using at = await started([door(), watching, other]);
    expect(await at.ask("up/model", "hello")).toMatchObject({ status: 200, text: "Yes" });
    const [own] = of.heard;
    const client = reserves(at).at(-1)!.request;
    expect(seen).toEqual([`other ${own!.id}`, `watching ${client}`, `other ${client}`]);
  });

  it("counts against the limits of its client", async () => {
    const of: Judging = { heard: [], failed: [] };
    const limit = { scope: "client", unit: "requests", max: 3, per: "day" };
    await using at = await started(
      [door([limit]), judge("judge", of, { times: 5, pass: true })],
      "store: memory\n",
    );
    const { status } = await at.ask("up/model", "hello");
    expect([of.heard.length, of.failed.length, status]).toEqual([3, 2, 429]);
    expect(at.upstream.requests.filter(({ method }) => method === "POST")).toHaveLength(3);
  });

  it("may use only what its client may use", async () => {
    const of: Judging = { heard: [], failed: [] };
    const only = door([], { models: ["up/other"] });
    await using at = await started([only, judge("judge", of, { pass: true })]);
    await at.ask("up/model", "hello");
    expect([of.heard.length, String(of.failed[0])]).toEqual([
      0,
      expect.stringContaining("up/model"),
    ]);
    expect(at.upstream.requests.filter(({ method }) => method === "POST")).toEqual([]);
  });

  it("is no error of the client: an error that is not caught is the hook's", async () => {
    const of: Judging = { heard: [], failed: [] };
    await using at = await started([
      door(),
      judge("judge", of, { body: { model: "nowhere/such" } }),
    ]);
    const { status } = await at.ask("up/model", "hello");
    expect(of.failed).toHaveLength(1);
    expect(status).not.toBe(200);
  });

  it("runs all other middleware, and none that sent a subrequest before", async () => {
    const one: Judging = { heard: [], failed: [] };
    const two: Judging = { heard: [], failed: [] };
    await using at = await started([door(), judge("one", one), judge("two", two)]);
    expect((await at.ask("up/model", "hello")).status).toBe(200);
    // The client's request: one sends a subrequest, for which two sends another; two sends one, for
    // which one sends another.
    expect([one.heard.length, two.heard.length]).toEqual([2, 2]);
    expect(reserves(at)).toHaveLength(5);
  });

  it("can be nested four levels deep, and no deeper", async () => {
    const all = ["a", "b", "c", "d", "e", "f"].map((name) => ({ name, heard: [], failed: [] }));
    const first = (name: string, of: Judging) => judge(name, of, { pass: true });
    await using at = await started([door(), ...all.map((each) => first(each.name, each))]);
    expect((await at.ask("up/model", "hello")).status).toBe(200);
    const said = all.flatMap(({ failed }) => failed).map(String);
    expect(said.length).toBeGreaterThan(0);
    expect(new Set(said)).toEqual(new Set([expect.stringContaining("at most 4 levels deep")]));
    // The plugins call each other in a circle, which no retry can fix.
    const kinds = all.flatMap(({ failed }) => failed).map((problem) => getFault(problem)?.kind);
    expect(new Set(kinds)).toEqual(new Set(["internal"]));
    const parents = new Map(reserves(at).map((row) => [row.request, row.labels?.["parent"]]));
    const depth = (id: string): number => {
      const parent = parents.get(id);
      return parent === undefined ? 0 : 1 + depth(parent);
    };
    expect(Math.max(...[...parents.keys()].map(depth))).toBe(4);
  });

  it("ends when its client disconnects", async () => {
    let asked: Promise<unknown> | undefined;
    const late = defineMiddleware({
      api: 1,
      name: "late",
      summary: "Asks a model that takes its time",
      sends: "nowhere",
      setup: (_options, ctx) => ({
        async inspect(_request, x) {
          asked = asks(ctx, x, { model: "slow/slow" });
          await asked;
        },
      }),
    });
    await using at = await startGateway({
      config: `frontends: [chat-completions]\nmiddleware: [door, late]\n${PROVIDERS}  slow: { use: demo }\n`,
      plugins: { door: door(), late },
      env: { UPKEY: "sk-up" },
    });
    const leaving = AbortSignal.timeout(1_000);
    await expect(
      fetch(`${at.url}${CHAT}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "up/model", messages: [{ role: "user", content: "x" }] }),
        signal: leaving,
      }),
    ).rejects.toThrow();
    await expect(asked).rejects.toThrow();
    expect(at.upstream.requests.filter(({ method }) => method === "POST")).toEqual([]);
  });

  it("is subject to its client's privacy", async () => {
    const of: Judging = { heard: [], failed: [] };
    const zero = defineMiddleware({
      api: 1,
      name: "zero",
      summary: "Nothing may be kept",
      sends: "nowhere",
      setup: () => ({ admit: (x) => x.requirePrivacy("required") }),
    });
    await using at = await started([door(), zero, judge("judge", of, { pass: true })]);
    await at.ask("up/model", "hello");
    expect([of.heard.length, of.failed.length]).toEqual([0, 1]);
    expect(at.upstream.requests.filter(({ method }) => method === "POST")).toEqual([]);
    expect(reserves(at)).toEqual([]);
  });

  it("passes on the events of a stream one after the other", async () => {
    const events: string[] = [];
    const errors: string[] = [];
    let [open, most] = [0, 0];
    let result: SubrequestResult | undefined;
    const streaming = defineMiddleware({
      api: 1,
      name: "streaming",
      summary: "Streams a subrequest",
      sends: "nowhere",
      setup: (_options, ctx) => ({
        async inspect(_request, x) {
          const messages = [{ role: "user", content: "x" }];
          const body = { model: "up/model", messages, stream: true };
          const onEvent = async (data: string) => {
            most = Math.max(most, ++open);
            await new Promise(setImmediate);
            events.push(data);
            open--;
          };
          result = await ctx.sendSubrequest({ path: CHAT, body }, { parentRequest: x, onEvent });
          const failed = await Promise.allSettled([
            ctx.sendSubrequest(
              { path: CHAT, body },
              { parentRequest: x, onEvent: () => Promise.reject(new Error("full")) },
            ),
            ctx.sendSubrequest(
              { path: CHAT, body: { ...body, model: "nowhere/none" } },
              { parentRequest: x, onEvent },
            ),
          ]);
          errors.push(...failed.map((each) => String((each as PromiseRejectedResult).reason)));
        },
      }),
    });
    await using at = await started([door(), streaming]);
    expect((await at.ask("up/model", "hello")).status).toBe(200);
    expect([most, errors]).toEqual([1, ["Error: full", expect.stringContaining("nowhere/none")]]);
    expect(events.at(-1)).toBe("[DONE]");
    const text = events.slice(0, -1).map((data) => {
      const [choice] = (JSON.parse(data) as { choices: { delta: { content?: string } }[] }).choices;
      return choice?.delta.content ?? "";
    });
    expect(text.join("")).toBe("Yes");
    expect(result).toMatchObject({ body: null, calls: [{ state: "exact" }] });
    expect(reserves(at)).toHaveLength(3);
  });

  it("reaches a route that a frontend handles, with headers and without credentials", async () => {
    let result: SubrequestResult | undefined;
    const seen: unknown[] = [];
    const own = defineFrontend({
      api: 1,
      name: "own",
      summary: "Handles a route",
      setup: () => ({
        routes: [
          {
            method: "POST",
            path: "/own/:name",
            body: "json",
            handle(x, body) {
              seen.push([x.params["name"], x.identity?.id, x.headers, body]);
              return { status: 200, body: { done: true } };
            },
          },
          { method: "GET", path: "/own", handle: () => ({ status: 200 }) },
        ],
      }),
    });
    const calling = defineMiddleware({
      api: 1,
      name: "calling",
      summary: "Calls a route",
      sends: "nowhere",
      setup: (_options, ctx) => ({
        async inspect(_request, x) {
          const headers = { "X-Own": "1", Authorization: "Bearer secret" };
          const of = { parentRequest: x };
          const request = { path: "/own/a.b%20c", body: { b: 1 }, headers };
          result = await ctx.sendSubrequest(request, of);
          for (const path of ["/own", "/own/a/b", "/own/", "/own/%zz"])
            await expect(ctx.sendSubrequest({ ...request, path }, of)).rejects.toThrow(
              "No frontend",
            );
        },
      }),
    });
    await using at = await startGateway({
      config: `frontends: [chat-completions, own]\nmiddleware: [door, calling]\n${PROVIDERS}`,
      plugins: { door: door(), calling, own },
      upstream: scriptedModel(say("Yes"), ["model"]),
      env: { UPKEY: "sk-up" },
    });
    expect((await at.ask("up/model", "hello")).status).toBe(200);
    expect(result).toMatchObject({ body: { done: true }, calls: [] });
    expect(seen).toEqual([
      [
        "a.b c",
        "client",
        { "x-own": "1", "content-type": "application/json", "content-length": "7" },
        { b: 1 },
      ],
    ]);
  });

  it("is streamed only with onEvent, and needs a path of a frontend", async () => {
    const of: Judging = { heard: [], failed: [] };
    const stray = defineMiddleware({
      api: 1,
      name: "stray",
      summary: "Asks elsewhere",
      sends: "nowhere",
      setup: (_options, ctx) => ({
        async inspect(_request, x) {
          const said = await Promise.allSettled([
            ctx.sendSubrequest({ path: "/v1/none", body: {} }, { parentRequest: x }),
            ctx.sendSubrequest({ path: CHAT, body: { stream: true } }, { parentRequest: x }),
            ctx.sendSubrequest({ path: CHAT, body: {} }, { parentRequest: {} as never }),
          ]);
          of.failed.push(...said.map((each) => String((each as PromiseRejectedResult).reason)));
          fail("forbidden", "seen");
        },
      }),
    });
    await using at = await started([door(), stray]);
    await at.ask("up/model", "hello");
    expect(of.failed).toEqual([
      expect.stringContaining("No frontend"),
      expect.stringContaining("only with onEvent"),
      expect.stringContaining("must be a request"),
    ]);
  });
});
