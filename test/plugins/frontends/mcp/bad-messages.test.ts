// Servers and clients that break the protocol, generated: the client gets the specification's error,
// each reserved call is settled, and nothing grows without a bound.
import fc from "fast-check";
import { createFault } from "tollgate/plugin";
import { describe, expect, it } from "vitest";
import { turnEventLoop, until } from "../../../kit/wait.ts";
import {
  finalMessage,
  META,
  MODERN,
  modernMessage,
  rpc,
  SESSION,
  startFrontend,
  type MemoryFrontend,
  type MemoryServer,
  type Received,
} from "./memory-frontend.ts";

type Json = Record<string, any>;

const MIB = 1024 * 1024;
const TOOL = { name: "run_it", inputSchema: { type: "object" } };
const OK = () => rpc("ID", { result: { content: [{ type: "text", text: "done" }] } });

const serverOf = (kind: "modern" | "session", of: Partial<MemoryServer> = {}): MemoryServer => ({
  kind,
  tools: [TOOL],
  prompts: [{ name: "ask" }],
  resources: [{ uri: "file:///x", name: "x" }],
  call: OK,
  ...of,
});

const send = (
  { post }: MemoryFrontend,
  method: string,
  params: Json = {},
  signal?: AbortSignal,
): Promise<Received> => {
  const { body, headers } = modernMessage(method, params);
  return post(body, { path: "one", headers, ...(signal && { signal }) });
};

/** Checks that a message is a response of JSON-RPC, with the shape of its method. */
function expectResponse(method: string, got: Received): Json {
  const message = finalMessage(got);
  const { result, error } = message;
  expect(message).toMatchObject({ jsonrpc: "2.0", id: 1 });
  expect([result !== undefined, error !== undefined]).toEqual([!error, !result]);
  if (error) {
    expect(error).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
    expect(Number.isInteger(error.code)).toBe(true);
    return message;
  }
  if (method === "tools/list")
    for (const tool of result.tools)
      expect(tool).toMatchObject({ name: expect.any(String), inputSchema: expect.any(Object) });
  const members: Json = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "prompts/get": "messages",
    "resources/read": "contents",
  };
  const isInput = result.resultType === "input_required";
  if (method === "tools/call" && !isInput)
    expect(Array.isArray(result.content) || "structuredContent" in result).toBe(true);
  if (members[method] && !isInput) expect(Array.isArray(result[members[method]])).toBe(true);
  return message;
}

/** Where and how the response to a method is broken. */
type Fault =
  | { readonly type: "replace" | "remove"; readonly at: number; readonly value: unknown }
  | { readonly type: "cut" | "die"; readonly at: number }
  | { readonly type: "status"; readonly status: number }
  | { readonly type: "media"; readonly media: string | undefined }
  | { readonly type: "body"; readonly body: string }
  | { readonly type: "hang" };

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    type: fc.constantFrom("replace" as const, "remove" as const),
    at: fc.nat(1_000),
    value: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, 0, "", [], {}, [null])),
  }),
  fc.record({ type: fc.constantFrom("cut" as const, "die" as const), at: fc.nat(1_000) }),
  fc.record({
    type: fc.constant("status" as const),
    status: fc.constantFrom(202, 204, 301, 400, 401, 403, 404, 405, 408, 409, 429, 500, 502, 503),
  }),
  fc.record({
    type: fc.constant("media" as const),
    media: fc.constantFrom("text/html", "text/event-stream", "application/xml", undefined),
  }),
  fc.record({
    type: fc.constant("body" as const),
    body: fc.constantFrom(
      "",
      "null",
      "[]",
      "{",
      "\u0000",
      `${"[".repeat(100)}${"]".repeat(100)}`,
      '{"jsonrpc":"2.0","id":{},"result":{}}',
      '{"jsonrpc":"1.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":1}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":1e308,"message":""}}',
      '{"jsonrpc":"2.0","method":"ping","id":7}',
    ),
  }),
  fc.constant({ type: "hang" as const }),
);

/** Applies a change to the n-th value of JSON, counted modulo their number. */
function changeValue(root: Json, { type, at, value }: Extract<Fault, { value: unknown }>): unknown {
  const places: [holder: Json, key: string][] = [];
  const visit = (holder: Json): void => {
    for (const [key, inner] of Object.entries(holder)) {
      places.push([holder, key]);
      if (typeof inner === "object" && inner !== null) visit(inner as Json);
    }
  };
  visit(root);
  const [holder, key] = places[at % places.length]!;
  if (type === "replace") holder[key] = value;
  else delete holder[key];
  return root;
}

async function breakResponse(
  given: Response,
  of: Fault,
  { signal, isShared }: { readonly signal: AbortSignal; readonly isShared: boolean },
): Promise<Response> {
  const { status } = given;
  const headers: Json = Object.fromEntries(given.headers);
  const text = await given.text();
  const respond = (body: BodyInit | null, more: ResponseInit = {}) =>
    new Response(body, { status, headers, ...more });
  switch (of.type) {
    case "replace":
    case "remove":
      return respond(
        text === "" ? null : JSON.stringify(changeValue(JSON.parse(text) as Json, of)),
      );
    case "cut":
      return respond(text.slice(0, of.at % Math.max(1, text.length)));
    case "die": {
      // The host receives the whole body of an error itself.
      if (status >= 300) throw createFault("upstream", "The connection broke.");
      const start = Buffer.from(text).subarray(0, of.at % Math.max(1, text.length));
      const pieces = [start];
      return respond(
        new ReadableStream<Uint8Array>({
          pull(controller) {
            const piece = pieces.shift();
            if (piece && piece.length > 0) controller.enqueue(piece);
            else controller.error(new Error("The connection broke."));
          },
        }),
      );
    }
    case "status":
      return respond([202, 204].includes(of.status) ? null : text, { status: of.status });
    case "media": {
      const { "content-type": _, ...rest } = headers;
      return respond(text, {
        headers: of.media === undefined ? rest : { ...rest, "content-type": of.media },
      });
    }
    case "body":
      return respond(of.body);
    case "hang":
      // Lists and sessions do not end with one client. The host ends them after a time without data.
      if (isShared) throw createFault("timeout", "No byte arrived in time.");
      return new Promise((_resolve, reject) => {
        const fail = () => reject(createFault("canceled", "The request was canceled."));
        if (signal.aborted) fail();
        signal.addEventListener("abort", fail, { once: true });
      });
  }
}

const REQUESTS: readonly [method: string, params: Json][] = [
  ["tools/list", {}],
  ["tools/call", { name: "run_it", arguments: {} }],
  ["prompts/list", {}],
  ["prompts/get", { name: "ask" }],
  ["resources/read", { uri: "file:///x" }],
  ["completion/complete", { ref: { type: "ref/resource", uri: "file:///x" }, argument: {} }],
];
const RESULTS: Readonly<Record<string, Json>> = {
  "prompts/get": { messages: [{ role: "user", content: { type: "text", text: "x" } }] },
  "resources/read": { contents: [{ uri: "file:///x", text: "x" }] },
  "completion/complete": { completion: { values: ["a"] } },
  "tools/call": { content: [{ type: "text", text: "done" }] },
};
const BROKEN = [
  "server/discover",
  "initialize",
  "notifications/initialized",
  ...REQUESTS.map(([method]) => method),
];

describe.each(["modern", "session"] as const)("a %s server that breaks the protocol", (kind) => {
  it("causes errors of the protocol, and loses no call", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...BROKEN), fault, async (broken, of) => {
        let isBroken = true;
        const healthy = serverOf(kind, {
          override: ({ id, method }) => RESULTS[method] && rpc(id, { result: RESULTS[method] }),
        });
        const frontend = await startFrontend({
          one: {
            ...healthy,
            onResponse: (response, { method }, signal) =>
              isBroken && method === broken
                ? breakResponse(response, of, { signal, isShared: !RESULTS[broken] })
                : response,
          },
        });
        await using _ = frontend.test;
        for (const [method, params] of REQUESTS) {
          const stop = new AbortController();
          const running = send(frontend, method, params, stop.signal);
          if (of.type === "hang") void turnEventLoop(10).then(() => stop.abort());
          const got = await running;
          if (!stop.signal.aborted) expectResponse(method, got);
        }
        await until(() => frontend.test.openedCalls.every(({ result }) => result !== undefined));
        expect(frontend.test.logs.filter(({ level }) => level === "error")).toEqual([]);
        // The server works again, at the latest after its revision was determined again.
        isBroken = false;
        if (broken === "tools/list") return;
        const call = () => send(frontend, "tools/call", { name: "run_it", arguments: {} });
        const tries = [await call(), await call(), await call()].map(finalMessage);
        expect(tries.at(-1)!["result"]).toMatchObject({ content: [{ text: "done" }] });
      }),
      { numRuns: 80 },
    );
  });
});

/** A response whose body never ends. Returns it with the number of bytes that were taken. */
function endless(piece: Uint8Array, headers: Json): { response: Response; bytes: () => number } {
  let taken = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        taken += piece.length;
        controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
  const response = new Response(body, { headers: { "x-endless": "yes", ...headers } });
  return { response, bytes: () => taken };
}

describe("a server whose messages are too large", () => {
  const JSON_TYPE = { "content-type": "application/json" };
  const EVENTS = { "content-type": "text/event-stream" };
  const line = Buffer.from(`data: ${"x".repeat(MIB)}`);
  const comment = Buffer.from(`: ${"x".repeat(MIB)}\n\n`);
  const notification = Buffer.from(
    `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"${"x".repeat(MIB)}"}}\n\n`,
  );
  it.each([
    ["JSON", Buffer.from(" ".repeat(MIB)), JSON_TYPE, 17],
    ["one line", line, EVENTS, 18],
    ["comments", comment, EVENTS, 66],
    ["notifications", notification, EVENTS, 66],
  ] as const)("%s without an end is cut", async (_, piece, headers, maxMib) => {
    const { response, bytes } = endless(piece, headers);
    const frontend = await startFrontend({ one: serverOf("modern", { call: () => response }) });
    await using test = frontend.test;
    const got = await send(frontend, "tools/call", { name: "run_it", arguments: {} });
    expect(expectResponse("tools/call", got)["error"]).toMatchObject({ code: -32_603 });
    expect(bytes()).toBeLessThanOrEqual(maxMib * (MIB + 200));
    expect(test.openedCalls.map(({ result }) => result?.state)).toEqual(["estimated"]);
  });

  it("a list is bounded in pages, entries, and the size of each entry", async () => {
    const pageOf = (tools: readonly Json[], more: Json = {}) => ({ result: { tools, ...more } });
    const deep = (levels: number): Json =>
      levels === 0 ? {} : { type: "object", properties: { a: deep(levels - 1) } };
    const lists: readonly [what: string, (page: number) => Json, expected: Json][] = [
      ["pages", (page) => pageOf([], { nextCursor: `${page}` }), { error: /200 pages/ }],
      [
        "entries",
        (page) =>
          pageOf(
            Array.from({ length: 1_000 }, (_, n) => ({ ...TOOL, name: `tool_${page}_${n}` })),
            { nextCursor: `${page}` },
          ),
        { error: /5000 entries/ },
      ],
      [
        "one large schema",
        () => pageOf([TOOL, { ...TOOL, name: "large", inputSchema: { a: "x".repeat(200_000) } }]),
        { names: ["run_it"] },
      ],
      [
        "one deep schema",
        () => pageOf([TOOL, { ...TOOL, name: "deep", inputSchema: deep(25) }]),
        { names: ["run_it"] },
      ],
      [
        "a long name",
        () => pageOf([TOOL, { ...TOOL, name: "x".repeat(129) }]),
        { names: ["run_it"] },
      ],
    ];
    for (const [what, list, expected] of lists) {
      let page = 0;
      const override = ({ id, method }: Json) =>
        method === "tools/list" ? rpc(id, list(page++)) : undefined;
      const frontend = await startFrontend({ one: serverOf("modern", { override }) });
      await using _ = frontend.test;
      const { result, error } = expectResponse("tools/list", await send(frontend, "tools/list"));
      if (expected["error"])
        expect([what, error?.message]).toEqual([
          what,
          expect.stringMatching(expected["error"] as RegExp),
        ]);
      else
        expect([what, result.tools.map(({ name }: Json) => name)]).toEqual([
          what,
          expected["names"],
        ]);
      expect(page).toBeLessThanOrEqual(200);
    }
  });
});

describe("a client whose headers and body differ", () => {
  const tool = {
    name: "run_it",
    inputSchema: {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" } },
    },
  };
  const value = fc.string({ unit: "binary", maxLength: 12 });
  /** Both forms in which a header can contain a value. */
  const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`;
  const isPlain = (text: string) => /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text);
  const CHANGES: Readonly<
    Record<string, (of: { headers: Json; body: Json }, other: string) => number>
  > = {
    method: ({ headers }, other) => ((headers["mcp-method"] = `x${other}`), -32_020),
    noMethod: ({ headers }) => (delete headers["mcp-method"], -32_020),
    name: ({ headers }, other) => ((headers["mcp-name"] = base64(`run_it${other}!`)), -32_020),
    noName: ({ headers }) => (delete headers["mcp-name"], -32_020),
    invalidName: ({ headers }) => ((headers["mcp-name"] = "=?base64?%%%?="), -32_020),
    noVersion: ({ headers }) => (delete headers["mcp-protocol-version"], -32_020),
    version: ({ headers }) => ((headers["mcp-protocol-version"] = SESSION), -32_020),
    region: ({ headers }, other) => ((headers["mcp-param-region"] = base64(`${other}!`)), -32_020),
    noRegion: ({ headers }) => (delete headers["mcp-param-region"], -32_020),
    unknownVersion: ({ headers, body }, other) => {
      const wrong = `2099-01-01${Buffer.from(other).toString("hex")}`;
      headers["mcp-protocol-version"] = wrong;
      body["params"]["_meta"][`${META}protocolVersion`] = wrong;
      return -32_022;
    },
    noCapabilities: ({ body }) => (
      delete body["params"]["_meta"][`${META}clientCapabilities`],
      -32_602
    ),
  };
  it("is rejected before a row is written, and accepted in both encodings if they are equal", async () => {
    const frontend = await startFrontend({ one: serverOf("modern", { tools: [tool] }) });
    await using test = frontend.test;
    const requestOf = (region: string, isEncoded: boolean) => {
      const { body, headers } = modernMessage("tools/call", {
        name: "run_it",
        arguments: { region },
      });
      const encode = (text: string) => (isEncoded || !isPlain(text) ? base64(text) : text);
      headers["mcp-name"] = encode("run_it");
      headers["mcp-param-region"] = encode(region);
      return { body, headers };
    };
    const calls = () => frontend.sent.filter(({ body }) => body.includes('"tools/call"')).length;
    await fc.assert(
      fc.asyncProperty(
        value,
        fc.boolean(),
        fc.constantFrom(...Object.keys(CHANGES)),
        async (region, isEncoded, change) => {
          // Half of a surrogate pair has no encoding.
          fc.pre(region.isWellFormed() && region !== "");
          const good = requestOf(region, isEncoded);
          const before = [calls(), test.openedCalls.length];
          const accepted = await frontend.post(good.body, { path: "one", headers: good.headers });
          expect(finalMessage(accepted)).toMatchObject({ result: { content: [{ text: "done" }] } });
          const after = [before[0]! + 1, before[1]! + 1];
          expect([calls(), test.openedCalls.length]).toEqual(after);
          const bad = requestOf(region, isEncoded);
          const code = CHANGES[change]!(bad, region);
          const got = await frontend.post(bad.body, { path: "one", headers: bad.headers });
          expect([change, finalMessage(got)["error"]?.code]).toEqual([change, code]);
          // Headers of arguments are compared when the tool is known.
          if (!/region/i.test(change)) expect(got.status).toBe(400);
          if (code === -32_022) expect(finalMessage(got)["error"].data.supported).toContain(MODERN);
          expect([calls(), test.openedCalls.length]).toEqual(after);
        },
      ),
      { numRuns: 100 },
    );
  });
});
