// Laws of requests whose tools the gateway runs, with generated models, tools, and limits.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFault, type JsonObject, type RequestHead, type Subrequest } from "tollgate/plugin";
import { EventChannel } from "../../../../plugins/frontends/model-tools/event-channel.ts";
import {
  functionNameOf,
  GatewayTools,
} from "../../../../plugins/frontends/model-tools/gateway-tools.ts";
import { MessageTurns } from "../../../../plugins/frontends/model-tools/messages/message-turns.ts";
import { readToolRequest as readMessages } from "../../../../plugins/frontends/model-tools/messages/tool-request.ts";
import { Approvals } from "../../../../plugins/frontends/model-tools/responses/approvals.ts";
import { ResponseTurns } from "../../../../plugins/frontends/model-tools/responses/response-turns.ts";
import { readToolRequest as readResponses } from "../../../../plugins/frontends/model-tools/responses/tool-request.ts";
import { addUsage, ToolLoop } from "../../../../plugins/frontends/model-tools/tool-loop.ts";

interface Scenario {
  /** Tools that the key may call. */
  readonly permitted: readonly string[];
  /** Tools that the request selects. */
  readonly allowed: readonly string[];
  /** Calls of each turn, by the name of the tool. "own" is a function of the client. */
  readonly turns: readonly (readonly string[])[];
  readonly maxTurns: number;
  readonly maxCalls: number;
  /** Subrequest at which the client disconnects. */
  readonly disconnectAt: number | undefined;
}

const TOOLS = ["add", "get.issue", "drop_table", "x".repeat(80)];
const scenarios: fc.Arbitrary<Scenario> = fc.record({
  permitted: fc.subarray(TOOLS),
  allowed: fc.subarray(TOOLS),
  turns: fc.array(fc.array(fc.constantFrom(...TOOLS, "own"), { maxLength: 4 }), { maxLength: 6 }),
  maxTurns: fc.integer({ min: 1, max: 4 }),
  maxCalls: fc.integer({ min: 1, max: 5 }),
  disconnectAt: fc.option(fc.nat(8), { nil: undefined }),
});

const functionOf = (name: string) => (name === "own" ? name : functionNameOf("calc", name));
const usageOf = (turn: number) => ({ input_tokens: 10 + turn, output_tokens: 1 + turn });

/** A model and an MCP server behind subrequests. */
class World {
  readonly bodies: any[] = [];
  readonly called: string[] = [];
  readonly stop = new AbortController();
  #sent = 0;
  readonly #of: Scenario;
  readonly #encode: (names: readonly string[], turn: number, isStreamed: boolean) => any;

  constructor(of: Scenario, encode: World["encode"]) {
    this.#of = of;
    this.#encode = encode;
  }
  declare encode: (
    names: readonly string[],
    turn: number,
    isStreamed: boolean,
  ) => { body: JsonObject; events: readonly JsonObject[] };

  readonly x = {
    id: "request",
    path: "/turn",
    headers: { host: "gateway.test" },
    privacy: "off",
    identity: { id: "key" },
    signal: this.stop.signal,
  } as unknown as RequestHead;

  readonly ctx = {
    sendSubrequest: async ({ path, body }: Subrequest, { onEvent }: any) => {
      if (this.#sent++ === this.#of.disconnectAt) this.stop.abort();
      if (this.stop.signal.aborted) throw createFault("canceled", "The client disconnected.");
      if (path === "/turn") return this.#runTurn(body, onEvent);
      const { method, params } = body as any;
      if (method === "tools/list")
        return { body: { id: 1, result: { tools: this.#of.permitted.map((name) => ({ name })) } } };
      this.called.push(params.name);
      return { body: { id: 1, result: { content: [{ type: "text", text: params.name }] } } };
    },
    deriveSecret: () => new Uint8Array(32),
  } as any;

  async #runTurn(body: any, onEvent: ((data: string) => Promise<void>) | undefined) {
    const turn = this.bodies.push(structuredClone(body)) - 1;
    const choice = JSON.stringify(body.tool_choice ?? "");
    const names = choice.includes("none") ? [] : (this.#of.turns[turn] ?? []);
    const sent = this.#encode(names, turn, onEvent !== undefined);
    for (const event of onEvent ? sent.events : []) await onEvent!(JSON.stringify(event));
    return { body: onEvent ? null : sent.body };
  }

  createLoop(timeout_s = 600): ToolLoop {
    const { maxTurns: max_turns, maxCalls: max_calls } = this.#of;
    const options = { origins: [], max_turns, max_calls, max_result_kb: 1_000, timeout_s };
    return new ToolLoop({ ctx: this.ctx, tools: new GatewayTools(this.ctx, []), options }, this.x);
  }
}

function encodeResponse(names: readonly string[], turn: number) {
  const output =
    names.length > 0
      ? names.map((name, at) => ({
          id: `fc_${turn}_${at}`,
          type: "function_call",
          call_id: `call_${turn}_${at}`,
          name: functionOf(name),
          arguments: "{}",
        }))
      : [{ id: `msg_${turn}`, type: "message", content: [{ type: "output_text", text: "Done" }] }];
  const body = { id: `resp_${turn}`, status: "completed", output, usage: usageOf(turn) };
  const items = output.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item },
    { type: "response.output_item.done", output_index, item },
  ]);
  const start = { type: "response.created", response: { ...body, output: [] } };
  return { body, events: [start, ...items, { type: "response.completed", response: body }] };
}

function encodeMessage(names: readonly string[], turn: number) {
  const content =
    names.length > 0
      ? names.map((name, at) => ({
          type: "tool_use",
          id: `toolu_${turn}_${at}`,
          name: functionOf(name),
          input: {},
        }))
      : [{ type: "text", text: "Done" }];
  const stop_reason = names.length > 0 ? "tool_use" : "end_turn";
  const body = { id: `msg_${turn}`, type: "message", content, stop_reason, usage: usageOf(turn) };
  const { input_tokens, output_tokens } = usageOf(turn);
  const blocks = content.flatMap((content_block, index) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ]);
  return {
    body,
    events: [
      {
        type: "message_start",
        message: {
          ...body,
          content: [],
          stop_reason: null,
          usage: { input_tokens, output_tokens: 0 },
        },
      },
      ...blocks,
      { type: "message_delta", delta: { stop_reason }, usage: { output_tokens } },
      { type: "message_stop" },
    ],
  };
}

interface Ended {
  readonly world: World;
  readonly result: any;
  readonly events: JsonObject[];
}

async function runResponses(
  of: Scenario,
  isStreamed: boolean,
  more: object = {},
  require_approval = "never",
): Promise<Ended> {
  const world = new World(of, encodeResponse);
  const loop = world.createLoop();
  const approvals = new Approvals(world.ctx);
  const server = {
    type: "mcp",
    server_label: "calc",
    server_url: "/mcp/math",
    allowed_tools: [...of.allowed],
    require_approval,
  };
  const body = { input: "x", tools: [server], ...more } as JsonObject;
  const request = readResponses(world.x, body, { tools: loop.tools, approvals })!;
  const events: JsonObject[] = [];
  const send = isStreamed ? (event: JsonObject) => void events.push(event) : undefined;
  const turns = new ResponseTurns({ loop, request, body, approvals, send });
  return { world, events, result: await turns.run().catch((problem: unknown) => problem) };
}

async function runMessages(
  of: Scenario,
  isStreamed: boolean,
  editEvents = (events: readonly JsonObject[]) => events,
): Promise<Ended> {
  const world = new World(of, (names, turn) => {
    const { body, events } = encodeMessage(names, turn);
    return { body, events: editEvents(events as readonly JsonObject[]) };
  });
  const loop = world.createLoop();
  const configs = Object.fromEntries(of.allowed.map((name) => [name, { enabled: true }]));
  const body = {
    max_tokens: 10_000,
    messages: [{ role: "user", content: "x" }],
    mcp_servers: [{ type: "url", url: "https://gateway.test/mcp/math/", name: "calc" }],
    tools: [
      { type: "mcp_toolset", mcp_server_name: "calc", default_config: { enabled: false }, configs },
    ],
  } as JsonObject;
  const request = readMessages(world.x, body, loop.tools)!;
  const events: JsonObject[] = [];
  const send = isStreamed ? (list: readonly JsonObject[]) => void events.push(...list) : undefined;
  const turns = new MessageTurns({ loop, request, body, send });
  return { world, events, result: await turns.run().catch((problem: unknown) => problem) };
}

const withoutIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/mcpl?_gw_[0-9a-f]{32}/g, "id"));

describe.each([
  ["responses", runResponses, "output"],
  ["messages", runMessages, "content"],
] as const)("%s", (_, run, member) => {
  test("law: only permitted tools reach the model and the server, and the limits hold", async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, fc.boolean(), async (of, isStreamed) => {
        const { world, result } = await run(of, isStreamed);
        const usable = of.permitted.filter((name) => of.allowed.includes(name));
        for (const body of world.bodies)
          expect(body.tools.map(({ name }: { name: string }) => name)).toEqual(
            usable.map(functionOf),
          );
        for (const name of world.called) expect(usable).toContain(name);
        expect(world.bodies.length).toBeLessThanOrEqual(of.maxTurns);
        expect(world.called.length).toBeLessThanOrEqual(of.maxCalls);
        if (result instanceof Error) {
          expect(of.disconnectAt).toBeDefined();
          return;
        }
        const total = world.bodies.map((_body, turn) => usageOf(turn)).reduce(addUsage as any);
        expect(result.usage).toEqual(total);
        const made = result[member].filter(
          (item: any) => item.type === "mcp_call" || item.type === "mcp_tool_use",
        );
        for (const { name } of made) expect(usable).toContain(name);
        expect(made.length).toBeGreaterThanOrEqual(world.called.length);
      }),
      { numRuns: 150 },
    );
  });

  test("law: a streamed request has the same result, and its events build it", async () => {
    await fc.assert(
      fc.asyncProperty(scenarios, async (given) => {
        const of = { ...given, disconnectAt: undefined };
        const whole = await run(of, false);
        const streamed = await run(of, true);
        expect(withoutIds(streamed.result[member])).toEqual(withoutIds(whole.result[member]));
        expect(streamed.result.usage).toEqual(whole.result.usage);
        expect(withoutIds(streamed.world.bodies.map(({ stream: _s, ...body }) => body))).toEqual(
          withoutIds(whole.world.bodies.map(({ stream: _s, ...body }) => body)),
        );
        const done = new Map<unknown, unknown>();
        for (const { type, output_index, index, item, content_block } of streamed.events as any[]) {
          if (type === "response.output_item.done") done.set(output_index, item);
          if (type === "content_block_start") done.set(index, content_block);
        }
        const built = [...done].toSorted(([a], [b]) => Number(a) - Number(b)).map(([, one]) => one);
        expect(built).toEqual(streamed.result[member]);
      }),
      { numRuns: 75 },
    );
  });
});

test("law: by a response's ID, calls are made only if each call of the turn is answered", async () => {
  const masks = fc.array(fc.boolean(), { minLength: 6, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...TOOLS, "own"), { minLength: 1, maxLength: 5 }),
      masks,
      async (names, mask) => {
        const of = {
          permitted: TOOLS,
          allowed: TOOLS,
          turns: [names],
          maxTurns: 1,
          maxCalls: 5,
          disconnectAt: undefined,
        };
        const { world, result } = await runResponses(of, false, {}, "always");
        expect(world.called).toEqual([]);
        const pending = (result.output as any[]).filter(({ type }) => type !== "mcp_list_tools");
        expect(pending).toHaveLength(names.length);
        const input = pending
          .filter((_, at) => mask[at])
          .map(({ type, id, call_id }) =>
            type === "function_call"
              ? { type: "function_call_output", call_id, output: "mine" }
              : { type: "mcp_approval_response", approval_request_id: id, approve: true },
          );
        const loop = world.createLoop();
        const approvals = new Approvals(world.ctx);
        const body = { input, tools: [], previous_response_id: "resp_1" } as unknown as JsonObject;
        const read = () => readResponses(world.x, body, { tools: loop.tools, approvals });
        const hasApproval = input.some(({ type }) => type === "mcp_approval_response");
        if (!hasApproval || input.length === names.length) expect(read).not.toThrow();
        else expect(read).toThrow(/also asks for approval of the tool|No tool output found/);
      },
    ),
    { numRuns: 150 },
  );
});

test("the time of a request is limited, and a result without end is canceled", async () => {
  const of = {
    permitted: ["add"],
    allowed: ["add"],
    turns: [["add"]],
    maxTurns: 4,
    maxCalls: 4,
    disconnectAt: undefined,
  };
  const world = new World(of, encodeResponse);
  const { sendSubrequest } = world.ctx;
  let hasEnded = false;
  world.ctx.sendSubrequest = (request: Subrequest, more: { signal: AbortSignal }) => {
    if ((request.body as { method?: string }).method !== "tools/call")
      return sendSubrequest(request, more);
    return new Promise((_resolve, reject) => {
      more.signal.addEventListener("abort", () => {
        hasEnded = true;
        reject(createFault("canceled", "The subrequest was canceled."));
      });
    });
  };
  const loop = world.createLoop(1);
  const approvals = new Approvals(world.ctx);
  const server = { type: "mcp", server_label: "calc", server_url: "/mcp/math" };
  const body = { input: "x", tools: [{ ...server, require_approval: "never" }] } as JsonObject;
  const request = readResponses(world.x, body, { tools: loop.tools, approvals })!;
  const turns = new ResponseTurns({ loop, request, body, approvals, send: undefined });
  await expect(turns.run()).rejects.toThrow("longer than 1 s");
  expect(hasEnded).toBe(true);
});

test("law: a message that the client sends back becomes the turns that the model has seen", async () => {
  await fc.assert(
    fc.asyncProperty(scenarios, async (given) => {
      const of = { ...given, disconnectAt: undefined };
      const { world, result } = await runMessages(of, false);
      const uses = result.content.filter(({ type }: { type: string }) => type === "tool_use");
      const answers = uses.map(({ id }: { id: string }) => ({
        type: "tool_result",
        tool_use_id: id,
      }));
      const messages = [
        { role: "user", content: "x" },
        { role: "assistant", content: result.content },
        { role: "user", content: [...answers, { type: "text", text: "More" }] },
      ];
      const again = readMessages(world.x, { messages } as never, new GatewayTools(world.ctx, []));
      const seen = world.bodies.at(-1).messages;
      if (again) expect(again.messages.slice(0, seen.length)).toEqual(seen);
      else expect(seen).toHaveLength(1);
      // Every call of the model has its result in the next message.
      const all: any[] = [...(again?.messages ?? messages)];
      for (const [at, { role, content }] of all.entries()) {
        if (role !== "assistant") continue;
        const ids = content.flatMap((block: any) => (block.type === "tool_use" ? [block.id] : []));
        const results = all[at + 1].content.flatMap((block: any) => block.tool_use_id ?? []);
        expect(results.toSorted()).toEqual(ids.toSorted());
      }
    }),
    { numRuns: 150 },
  );
});

test("law: an approval belongs to one key, and any other ID is refused", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      fc.string(),
      fc.boolean(),
      (name, args, other, isMixed) => {
        const approvals = new Approvals({ deriveSecret: () => new Uint8Array(32) });
        const turn = { hasOtherCalls: isMixed, next: undefined, clientCalls: [other] };
        const call = { callId: "call", server: "calc", name, args, ...turn };
        const x = (id: string) => ({ identity: { id } }) as RequestHead;
        const id = approvals.createId(x("key"), call);
        expect(approvals.read(x("key"), id, "input[0]")).toEqual({ id, ...call });
        expect(() => approvals.read(x("another"), id, "input[0]")).toThrow("Unknown approval");
        expect(() =>
          approvals.read(x("key"), `${id.slice(0, -4)}AAAA${other}`, "input[0]"),
        ).toThrow();
        expect(() => approvals.read(x("key"), other, "input[0]")).toThrow("Unknown approval");
      },
    ),
  );
});

test("law: senders that wait for the client at the same time all continue", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 40 }),
      fc.option(fc.constantFrom("abort", "close"), { nil: undefined }),
      async (senders, each, end) => {
        const stop = new AbortController();
        const channel = new EventChannel(stop.signal);
        let sent = 0;
        const run = async () => {
          const work = async () => {
            for (let n = 0; n < each; n++) {
              await channel.send("x");
              sent++;
            }
          };
          await Promise.all(Array.from({ length: senders }, work));
        };
        const running = Promise.withResolvers<void>();
        const { body } = await channel.respond(
          () => {
            run().then(running.resolve, running.reject);
            return running.promise;
          },
          () => undefined,
        );
        const events = (body as AsyncIterable<string>)[Symbol.asyncIterator]();
        let read = (await events.next()).value.length;
        if (end === "abort") stop.abort();
        if (end === "close") await events.return!();
        if (end) await running.promise;
        for (let got = await events.next(); !got.done; got = await events.next())
          read += (got.value as string).length;
        await running.promise;
        expect(sent).toBe(senders * each);
        if (end !== "close") expect(read).toBe(senders * each);
      },
    ),
    { numRuns: 60 },
  );
});

test("an approval request has one response", () => {
  const approvals = new Approvals({ deriveSecret: () => new Uint8Array(32) });
  const x = { identity: { id: "key" } } as RequestHead;
  const turn = { hasOtherCalls: false, next: undefined, clientCalls: [] };
  const call = { callId: "call", server: "calc", name: "add", args: "{}", ...turn };
  const id = approvals.createId(x, call);
  const response = (approve: boolean) => ({
    type: "mcp_approval_response",
    approval_request_id: id,
    approve,
  });
  const read = (...input: JsonObject[]) =>
    readResponses(x, { input } as never, { tools: new GatewayTools({} as never, []), approvals });
  expect(read(response(true))!.input).toContainEqual({ approved: { id, ...call } });
  for (const second of [true, false])
    expect(() => read(response(true), response(second))).toThrow("has two responses");
});

const USUAL: Scenario = {
  permitted: ["add", "get.issue"],
  allowed: ["add", "get.issue"],
  turns: [["add"]],
  maxTurns: 2,
  maxCalls: 5,
  disconnectAt: undefined,
};

test("the number of servers of a request is limited", async () => {
  const labels = Array.from({ length: 200 }, (_, n) => `server${n}`);
  const tools = labels.map((server_label) => ({
    type: "mcp",
    server_label,
    server_url: "/mcp/math",
  }));
  const { result, world } = await runResponses(USUAL, false, { tools });
  expect(result.message).toContain("more than 64 MCP servers");
  expect(world.bodies).toEqual([]);
});

test("two servers whose tools have the same name are refused", async () => {
  const of = { ...USUAL, permitted: ["c", "b__c"] };
  const tools = ["a", "a__b"].map((server_label) => ({
    type: "mcp",
    server_label,
    server_url: "/mcp/math",
  }));
  const { result } = await runResponses(of, false, { tools });
  expect(result.message).toContain("Two tools are named a__b__c");
});

test("law: a repeated choice of tools allows each tool once", async () => {
  const names = fc.constantFrom<string | undefined>(undefined, "add", "get.issue", "unknown");
  await fc.assert(
    fc.asyncProperty(fc.array(names, { minLength: 1, maxLength: 20 }), async (chosen) => {
      const choices = chosen.map((name) => ({ type: "mcp", server_label: "calc", name }));
      const client = { type: "function", name: "own" };
      const tool_choice = { type: "allowed_tools", mode: "auto", tools: [client, ...choices] };
      const { world } = await runResponses(USUAL, false, { tool_choice });
      const [first, ...functions] = world.bodies[0].tool_choice.tools;
      expect(first).toEqual(client);
      const wanted = USUAL.permitted.filter(
        (name) => chosen.includes(name) || chosen.includes(undefined),
      );
      expect(new Set(functions.map(({ name }: { name: string }) => name))).toEqual(
        new Set(wanted.map(functionOf)),
      );
      expect(functions.length).toBeLessThanOrEqual(2 * USUAL.permitted.length);
    }),
  );
});

test("an index of a provider does not decide how much work a message is", async () => {
  const { result } = await runMessages(USUAL, true, (events) =>
    events.map((event) => ("index" in event ? { ...event, index: 4_294_967_294 } : event)),
  );
  expect(result.content.map(({ type }: { type: string }) => type)).toEqual([
    "mcp_tool_use",
    "mcp_tool_result",
    "text",
  ]);
});

test("the size of results includes errors of tools, which the client receives whole", async () => {
  const world = new World(USUAL, encodeResponse);
  const { sendSubrequest } = world.ctx;
  const image = { type: "image", mimeType: "image/png", data: "A".repeat(2_000_000) };
  world.ctx.sendSubrequest = (request: Subrequest, more: object) =>
    (request.body as { method?: string }).method === "tools/call"
      ? { body: { id: 1, result: { isError: true, content: [image] } } }
      : sendSubrequest(request, more);
  const loop = world.createLoop();
  const { byFunction } = await loop.listTools([
    { name: "calc", path: "/mcp/math", param: "tools[0]", isAllowed: () => true },
  ]);
  const [result] = await loop.runCalls(
    [{ tool: byFunction.get("calc__add")!, args: "{}" }],
    () => undefined,
  );
  expect(result!.text).toBe("The result of the tool is too large.");
});

test("after a failure of the gateway, no other call of the turn is made", async () => {
  const world = new World({ ...USUAL, maxCalls: 50 }, encodeResponse);
  const { sendSubrequest } = world.ctx;
  let made = 0;
  world.ctx.sendSubrequest = async (request: Subrequest, more: object) => {
    if ((request.body as { method?: string }).method !== "tools/call")
      return sendSubrequest(request, more);
    if (made++ === 0) throw new Error("broken");
    await new Promise((resolve) => setImmediate(resolve));
    return { body: { id: 1, result: { content: [] } } };
  };
  const loop = world.createLoop();
  const { byFunction } = await loop.listTools([
    { name: "calc", path: "/mcp/math", param: "tools[0]", isAllowed: () => true },
  ]);
  const call = { tool: byFunction.get("calc__add")!, args: "{}" };
  const calls = loop.runCalls(
    Array.from({ length: 40 }, () => call),
    () => undefined,
  );
  await expect(calls).rejects.toThrow("broken");
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
  expect(made).toBeLessThanOrEqual(8);
});
