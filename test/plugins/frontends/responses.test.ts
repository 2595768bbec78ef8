// Stored state and its owner: no key can access, continue, or even detect what another key created.
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import type {
  RequestHead,
  Body,
  Context,
  LedgerEntry,
  Fault,
  Frontend,
  LedgerQuery,
  RouteInput,
  PipelineRoute,
} from "tollgate/plugin";
import { getFault } from "tollgate/plugin";
import responses from "../../../plugins/frontends/responses.ts";
import { ItemMemory, finalResponseText } from "../../../plugins/frontends/item-memory.ts";
import { createResponseContext, createTestContext, encodeText } from "tollgate/testing";
import { responses as codec } from "tollgate/protocols/responses";

const entry = (
  key: string,
  upstreamId: string,
  more: Partial<LedgerEntry["target"]> = {},
): LedgerEntry => ({
  seq: 1,
  kind: "settle",
  attempt: "a",
  request: "r",
  at: 0,
  key,
  target: {
    provider: "openai",
    model: "gpt-6",
    protocol: "responses",
    credential: "main",
    ...more,
  },
  usage: {},
  costNano: 0n,
  state: "exact",
  outcome: "ok",
  upstreamId,
  labels: {},
  clientRequest: {
    model: "fast",
    frontend: "responses",
    protocol: "responses",
    mode: "passthrough",
    stream: false,
  },
});
const book = [
  entry("alice", "resp_alice"),
  entry("bob", "resp_bob"),
  entry("alice", "resp_chat", { protocol: "chat-completions" }),
];

async function mounted(options: Record<string, unknown> = {}, shared?: any) {
  const lent = createTestContext({
    ...(shared && { shared }),
    ledger: {
      listEntries: async ({ key, upstreamId }: LedgerQuery) => ({
        items: book.filter((e) => e.key === key && e.upstreamId === upstreamId),
      }),
      sumEntries: async () => [],
    } as Context["ledger"],
  });
  const frontend = (await responses.setup(
    { accept: ["bearer"], reasoning: "summary", item_memory_mb: 1, ...options } as never,
    lent.ctx,
  )) as Frontend;
  const read = async (
    method: string,
    path: string,
    who: string,
    body: Body = {},
    more: Partial<RequestHead> = {},
  ): Promise<RouteInput> => {
    const route = frontend.routes.find(
      (r) => r.method === method && r.path.includes(path),
    ) as PipelineRoute;
    const x = {
      identity: { id: who },
      privacy: "off",
      params: {},
      query: new URLSearchParams(),
      ...more,
    };
    return route.readInput!(x as unknown as RequestHead, body);
  };
  return { frontend, read, lent };
}

const refused = async (run: Promise<unknown>): Promise<Fault> =>
  run.then(
    () => {
      throw new Error("Nothing was refused.");
    },
    (error) => getFault(error) ?? Promise.reject(error as Error),
  );
const hi: Body = { model: "fast", input: "Hi" };

const RECORDED = {
  operation: "chat",
  protocol: "responses",
  stream: false,
  contentType: "application/json",
  usage: {},
  model: "m",
} as const;

describe("a request", () => {
  it("is sent where it states, unless it continues a response", async () => {
    const { read } = await mounted();
    expect(await read("POST", "/v1/responses", "alice", hi)).toMatchObject({ model: "fast" });
    const pinned = (model: string) =>
      read("POST", "/v1/responses", "alice", { ...hi, model, previous_response_id: "resp_alice" });
    expect((await pinned("fast")).model).toMatchObject({
      provider: "openai",
      model: "gpt-6",
      credential: "main",
    });
    expect((await pinned("openai/gpt-7")).model).toEqual({
      provider: "openai",
      model: "gpt-7",
      credential: "main",
    });
    expect((await refused(pinned("anthropic/claude"))).code).toBe("previous_response_not_found");
  });

  it("that would outlast its response is rejected, for any provider", async () => {
    const { read } = await mounted();
    for (const [param, field] of [
      ["background", { background: true }],
      ["conversation", { conversation: "conv_1" }],
    ] as const)
      expect(
        await refused(read("POST", "/v1/responses", "alice", { ...hi, ...field })),
      ).toMatchObject({
        kind: "invalid",
        param,
        code: "unsupported_parameter",
      });
  });

  it("under privacy stores nothing, and continues nothing", async () => {
    const { read } = await mounted();
    const under = { privacy: "required" } as const;
    const plain = await read("POST", "/v1/responses", "alice", hi, under);
    expect(plain.edits).toBeUndefined();
    expect(plain.record).toBeUndefined();
    expect(
      await refused(
        read(
          "POST",
          "/v1/responses",
          "alice",
          { ...hi, previous_response_id: "resp_alice" },
          under,
        ),
      ),
    ).toMatchObject({ code: "previous_response_not_found" });
  });

  it("has an error that makes a client send everything again", async () => {
    const { read } = await mounted();
    expect(
      await refused(
        read("POST", "/v1/responses", "alice", { ...hi, previous_response_id: "resp_none" }),
      ),
    ).toMatchObject({
      kind: "unsupported",
      code: "previous_response_not_found",
      param: "previous_response_id",
      message: expect.stringContaining("Previous response with id 'resp_none' not found."),
    });
  });
});

describe("two keys", () => {
  const told = async (run: (id: string) => Promise<unknown>, id: string) => {
    const { message, ...fault } = await refused(run(id));
    return { ...fault, message: message.replaceAll(id, "<id>") };
  };

  it.each([
    "GET /v1/responses/:id",
    "DELETE /v1/responses/:id",
    "GET /v1/responses/:id/input_items",
  ])("%s: another key's response is as unknown as one that never existed", async (route) => {
    const { read } = await mounted();
    const [method, path] = route.split(" ") as [string, string];
    const get = (who: string) => (id: string) => read(method, path, who, {}, { params: { id } });
    expect((await get("alice")("resp_alice")).model).toMatchObject({
      provider: "openai",
      credential: "main",
    });
    const nobody = await told(get("alice"), "resp_none");
    expect(nobody).toMatchObject({ kind: "not_found" });
    expect(await told(get("alice"), "resp_bob")).toEqual(nobody);
    expect(await told(get("bob"), "resp_alice")).toEqual(nobody);
    expect(await told(get("alice"), "resp_chat")).toEqual(nobody);
    expect(await told(get("alice"), "")).toEqual({ ...nobody, message: expect.any(String) });
  });

  it("previous_response_id: another key's response cannot be continued or detected", async () => {
    const { read } = await mounted();
    for (const path of ["/v1/responses", "/v1/responses/input_tokens"]) {
      const go = (who: string) => (id: string) =>
        read("POST", path, who, { ...hi, previous_response_id: id });
      const nobody = await told(go("alice"), "resp_none");
      expect(await told(go("alice"), "resp_bob")).toEqual(nobody);
      expect(await told(go("bob"), "resp_alice")).toEqual(nobody);
    }
  });

  it("item_reference: a few bytes cannot expand to an endless request", async () => {
    const { read } = await mounted({ item_memory_mb: 4 });
    const answer = await read("POST", "/v1/responses", "alice", hi);
    const text = "x".repeat(1 << 20);
    const body = JSON.stringify({ output: [{ type: "message", id: "msg_a", text }] });
    answer.record!.onRecorded({ ...RECORDED, body: Buffer.from(body) });
    const refer = (times: number) =>
      read("POST", "/v1/responses", "alice", {
        ...hi,
        input: Array.from({ length: times }, () => ({ type: "item_reference", id: "msg_a" })),
      });
    expect((await refer(2)).edits!["input"]).toHaveLength(2);
    expect(await refused(refer(5_000))).toMatchObject({
      kind: "too_large",
      code: "request_too_large",
    });
  });

  it("item_reference: an item of another key is a miss like any other", async () => {
    const { read } = await mounted();
    const answer = await read("POST", "/v1/responses", "alice", hi);
    answer.record!.onRecorded({
      ...RECORDED,
      body: Buffer.from(JSON.stringify({ output: [{ type: "message", id: "msg_a" }] })),
    });
    const refer = (who: string) => (id: string) =>
      read("POST", "/v1/responses", who, { ...hi, input: [{ type: "item_reference", id }] });
    expect((await refer("alice")("msg_a")).edits).toEqual({
      input: [{ type: "message", id: "msg_a" }],
    });
    const nobody = await told(refer("bob"), "msg_none");
    expect(nobody).toMatchObject({ kind: "invalid", code: "item_not_found", param: "input[0]" });
    expect(nobody.message).toContain("store: false");
    expect(await told(refer("bob"), "msg_a")).toEqual(nobody);
    expect(
      (
        await refused(
          read(
            "POST",
            "/v1/responses",
            "alice",
            { ...hi, input: [{ id: "msg_a" }] },
            { privacy: "strict" },
          ),
        )
      ).code,
    ).toBe("item_not_found");
  });
});

describe("the item cache", () => {
  const events = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: 'Hi\ndata: {"output":[]}' },
    { type: "close", index: 0 },
    { type: "finish", reason: "stop" },
  ] as const;

  it("reads items of streamed responses", () => {
    const body = Buffer.from(
      encodeText(codec().server!, events, createResponseContext({ stream: true })),
    );
    const memory = new ItemMemory({ bytes: 1e6, bytesPerKey: 1e6, maxAgeMs: 1e6 });
    memory.add("a", finalResponseText("text/event-stream; charset=utf-8", body)!);
    const id = /"id":"(msg_\w+)"/.exec(body.toString())![1]!;
    expect(memory.find("a", id)).toMatchObject({ type: "message", role: "assistant" });
    expect(memory.find("b", id)).toBeUndefined();
    expect(finalResponseText("text/event-stream", Buffer.from(": nothing\n\n"))).toBeUndefined();
  });

  it("can be disabled, and survives reloads", async () => {
    const { read } = await mounted({ item_memory_mb: 0 });
    expect((await read("POST", "/v1/responses", "alice", hi)).record).toBeUndefined();
    const first = await mounted();
    expect(
      (await first.read("POST", "/v1/responses", "alice", { ...hi, store: false })).record,
    ).toBeUndefined();
  });

  it("lets no key evict items that another key may refer to", () => {
    const memory = new ItemMemory({ bytes: 400, bytesPerKey: 200, maxAgeMs: 100 });
    const answer = (id: string) => JSON.stringify({ output: [{ id, pad: "x".repeat(50) }] });
    memory.add("quiet", answer("m"));
    for (let n = 0; n < 50; n++) memory.add("loud", answer(`m${n}`));
    expect(memory.find("quiet", "m")).toBeDefined();
    expect(memory.find("loud", "m49")).toBeDefined();
    expect(memory.find("loud", "m0")).toBeUndefined();
    // An item larger than a key's whole share is not stored.
    memory.add("large", "x".repeat(201));
    expect(memory.bytes).toBeLessThanOrEqual(400);
  });

  it("stays within its bounds and expires items in time, whatever happens", () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.record({
              do: fc.constant("keep" as const),
              who: fc.constantFrom("a", "b", "c"),
              id: fc.nat({ max: 9 }),
              pad: fc.nat({ max: 60 }),
            }),
            fc.record({
              do: fc.constant("find" as const),
              who: fc.constantFrom("a", "b", "c"),
              id: fc.nat({ max: 9 }),
            }),
            fc.record({ do: fc.constant("wait" as const), ms: fc.nat({ max: 40 }) }),
            fc.record({ do: fc.constant("sweep" as const) }),
          ),
          { maxLength: 60 },
        ),
        (steps) => {
          let now = 0;
          const memory = new ItemMemory({ bytes: 400, bytesPerKey: 200, maxAgeMs: 100 }, () => now);
          const kept = new Map<string, { at: number; pad: number }>();
          for (const step of steps) {
            if (step.do === "wait") now += step.ms;
            if (step.do === "sweep") memory.removeExpired();
            if (step.do === "keep") {
              memory.add(
                step.who,
                JSON.stringify({ output: [{ id: `m${step.id}`, pad: "x".repeat(step.pad) }] }),
              );
              kept.set(`${step.who} m${step.id}`, { at: now, pad: step.pad });
            }
            if (step.do === "find") {
              const found = memory.find(step.who, `m${step.id}`);
              const expected = kept.get(`${step.who} m${step.id}`);
              // It may forget, but it never invents, confuses, or keeps items too long.
              if (found) {
                expect(found["pad"]).toBe("x".repeat(expected!.pad));
                expect(now - expected!.at).toBeLessThan(100);
              }
            }
            expect(memory.bytes).toBeLessThanOrEqual(400);
            expect(memory.bytes).toBeGreaterThanOrEqual(0);
          }
          now += 1000;
          memory.removeExpired();
          expect(memory.bytes).toBe(0);
        },
      ),
    ));
});

const NO_QUERY = new URLSearchParams();

describe("the key", () => {
  it("is in the place that this endpoint expects", async () => {
    const { frontend } = await mounted();
    const { extractCredential } = frontend;
    expect(extractCredential!({ authorization: "Bearer tg_1" }, NO_QUERY)).toBe("tg_1");
    expect(extractCredential!({}, NO_QUERY)).toBeUndefined();
    expect(() => extractCredential!({ "x-api-key": "tg_1" }, NO_QUERY)).toThrow(
      /Authorization: Bearer/,
    );
    const both = (await mounted({ accept: ["bearer", "x-api-key"] })).frontend.extractCredential!;
    expect(both({ "x-api-key": "tg_1" }, NO_QUERY)).toBe("tg_1");
    expect(both({ "x-api-key": "tg_1", authorization: "Bearer tg_1" }, NO_QUERY)).toBe("tg_1");
    for (const read of [both, extractCredential!])
      expect(() => read({ "x-api-key": "tg_1", authorization: "Bearer tg_2" }, NO_QUERY)).toThrow(
        /different keys/,
      );
  });
});
