// The middleware `prompt-caches`: which requests change what was sent before, and where breakpoints
// are added.
import * as fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import type { Json, JsonObject, Outgoing } from "tollgate/plugin";
import { createTestContext, jsonResponse, startTestGateway, startUpstream } from "tollgate/testing";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import promptCaches from "../../../plugins/middleware/prompt-caches.ts";
import { addBreakpoints } from "../../../plugins/middleware/prompt-caches/breakpoints.ts";
import {
  ConversationPrefixes,
  type PrefixChange,
} from "../../../plugins/middleware/prompt-caches/conversation-prefixes.ts";
import { PrefixPlaces } from "../../../plugins/middleware/prompt-caches/prefix-places.ts";
import { promptSections } from "../../../plugins/middleware/prompt-caches/prompt-sections.ts";

const sectionsOf = (body: JsonObject) => promptSections((field) => body[field])!;
const message = (text: string, role = "user"): JsonObject => ({
  role,
  content: [{ type: "text", text }],
});
const LONG = "x".repeat(200);

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

describe("the comparison with the previous request", () => {
  const texts = fc.array(fc.string({ maxLength: 300 }), { minLength: 1, maxLength: 8 });

  test("law: more messages after the same ones are no change, and any other message is", () => {
    fc.assert(
      fc.property(texts, texts, fc.nat(), fc.nat(), (before, more, seed, at) => {
        const memory = new ConversationPrefixes(10, seed);
        const system = [{ type: "text", text: LONG }];
        const earlier = { system, messages: before.map((text) => message(text)) };
        const later = { system, messages: [...before, ...more].map((text) => message(text)) };
        expect(memory.compare("a", sectionsOf(earlier))).toBeUndefined();
        expect(memory.compare("a", sectionsOf(later))).toBeUndefined();
        expect(memory.compare("a", sectionsOf(later))).toBeUndefined();
        const changed = structuredClone(later);
        const index = at % changed.messages.length;
        changed.messages[index] = message(`${LONG}${index}${LONG}`, "assistant");
        changed.messages.push(message(LONG));
        const prefix =
          sectionsOf({ ...later, messages: later.messages.slice(0, index) })?.items ?? [];
        const length = prefix.reduce((sum, { text }) => sum + text.length, 0);
        const change = memory.compare("a", sectionsOf(changed));
        // The last characters of the previous request may be too few for a hash.
        const whole = sectionsOf(later).items.reduce((sum, { text }) => sum + text.length, 0);
        if (change) {
          expect(change.to).toBeGreaterThan(length);
          expect(change.kept).toBeLessThan(1);
        } else expect(whole - length).toBeLessThan(64 + 40);
      }),
      { numRuns: 50 },
    );
  });

  test("law: a change in the block that changed before is found to the character", () => {
    const change = fc.record({ at: fc.nat(63), letter: fc.constantFrom("y", "z", "\u{1F309}") });
    fc.assert(
      fc.property(fc.nat(4), change, change, fc.nat(), (block, first, second, seed) => {
        const memory = new ConversationPrefixes(10, seed);
        const text = "x".repeat(64 * 6);
        const start = sectionsOf({ messages: [text] }).items[0]!.text.indexOf("x");
        const changed = ({ at, letter }: typeof first, n: number) => {
          const place = Math.max(0, 64 * block + at - start);
          return `${text.slice(0, place)}${letter}${n}${text.slice(place + 2)}`;
        };
        const versions = [text, changed(first, 1), changed(second, 2), changed(first, 3)];
        const all = versions.map((each) => sectionsOf({ messages: [each] }));
        const whole = all.map(({ items }) => items.map((item) => item.text).join(""));
        for (const [i, sections] of all.entries()) {
          const found = memory.compare("a", sections);
          if (i === 0) continue;
          const exact = firstDifference(whole[i - 1]!, whole[i]!);
          expect(found!.from).toBeLessThanOrEqual(exact);
          expect(found!.to).toBeGreaterThan(exact);
          const isWatched =
            i > 1 && firstDifference(whole[i - 2]!, whole[i - 1]!) >> 6 === exact >> 6;
          expect(found!.to - found!.from).toBe(isWatched ? 1 : 64);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("names the place of the first difference, to 64 characters", () => {
    const memory = new ConversationPrefixes(10, 1);
    const messages = [message(LONG), message(LONG, "assistant"), message("Go on.")];
    memory.compare("a", sectionsOf({ system: LONG, messages }));
    expect(memory.compare("a", sectionsOf({ system: `y${LONG}`, messages }))).toMatchObject({
      section: "instructions",
      path: "system",
      from: 0,
      to: 64,
      kept: 0,
    });
    const other = [message(LONG), message(`${LONG}!`, "assistant"), message("Go on.")];
    expect(memory.compare("a", sectionsOf({ system: `y${LONG}`, messages: other }))).toMatchObject({
      section: "messages",
      path: "messages[1]",
    });
  });

  it("ignores breakpoints, and keeps conversations apart", () => {
    const memory = new ConversationPrefixes(10, 1);
    const marked = {
      role: "user",
      content: [{ type: "text", text: LONG, cache_control: { type: "ephemeral" } }],
    };
    memory.compare("a", sectionsOf({ messages: [marked] }));
    expect(
      memory.compare("a", sectionsOf({ messages: [message(LONG), message("b")] })),
    ).toBeUndefined();
    expect(memory.compare("b", sectionsOf({ messages: [message("other")] }))).toBeUndefined();
  });

  it("keeps a limited number of conversations and hashes", () => {
    const memory = new ConversationPrefixes(3, 1);
    for (let i = 0; i < 100; i++)
      memory.compare(`c${i}`, sectionsOf({ messages: [message(LONG)] }));
    const one = Math.floor(sectionsOf({ messages: [message(LONG)] }).items[0]!.text.length / 64);
    expect(memory.size).toBe(3 * one);
  });
});

describe("the places of changes", () => {
  const change = (from: number, size = 1): PrefixChange => ({
    section: "instructions",
    path: "system",
    from,
    to: from + size,
    kept: 0.5,
  });

  it("name the part of the request and the position, or a range", () => {
    const places = new PrefixPlaces();
    expect(places.placeOf("k", change(7), 0)).toBe("system 7");
    expect(places.placeOf("k", change(64, 64), 0)).toBe("system 64-127");
  });

  test("law: a key has at most 100 different ones per day, and known ones stay", () => {
    const steps = fc.array(
      fc.record({ key: fc.constantFrom("a", "b"), from: fc.nat(300), day: fc.nat(1) }),
      { minLength: 200, maxLength: 600 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const places = new PrefixPlaces();
        const known = new Map<string, Set<string>>();
        for (const { key, from, day } of all.toSorted((a, b) => a.day - b.day)) {
          const id = `${key} ${day}`;
          const own = known.get(id) ?? new Set();
          known.set(id, own);
          const place = places.placeOf(key, change(from), day * 86_400_000);
          const isKnown = own.has(`system ${from}`);
          if (place === undefined) expect([isKnown, own.size]).toEqual([false, 100]);
          else own.add(place);
        }
        for (const own of known.values()) expect(own.size).toBeLessThanOrEqual(100);
      }),
      { numRuns: 20 },
    );
  });
});

describe("breakpoints", () => {
  const outgoing = (body: JsonObject): Pick<Outgoing, "get" | "set"> => ({
    get: (field) => body[field],
    set: (field, value) => void ((body as Record<string, Json>)[field] = value as Json),
  });
  const add = (body: JsonObject): JsonObject => {
    addBreakpoints(outgoing(body) as Outgoing);
    return body;
  };
  const count = (value: unknown): number =>
    JSON.stringify(value).split('"cache_control"').length - 1;
  const without = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value, (key, of: unknown) => (key === "cache_control" ? undefined : of)),
    );

  it("are on the last tool, system block, and message", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    expect(
      add({ tools: [{ name: "a" }, { name: "b" }], system: "Help.", messages: [message("Hi")] }),
    ).toEqual({
      tools: [{ name: "a" }, { name: "b", ...mark }],
      system: [{ type: "text", text: "Help.", ...mark }],
      messages: [{ role: "user", content: [{ type: "text", text: "Hi", ...mark }] }],
    });
  });

  const HOUR = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const MARK = { cache_control: { type: "ephemeral" } };

  it.each<[string, JsonObject]>([
    ["a system block", { system: [{ type: "text", text: "Help.", ...HOUR }] }],
    ["a tool", { tools: [{ name: "a", ...HOUR }] }],
    ["a block of a message", { messages: [{ role: "user", content: [{ ...HOUR }] }] }],
    ["the request", HOUR],
  ])("are not added if the client set one of 1 hour on %s", (_, own) => {
    const body = { tools: [{ name: "a" }], system: "Help.", messages: [message("Hi")], ...own };
    expect(add(structuredClone(body))).toEqual(body);
  });

  it("are on the last tool that is not deferred", () => {
    const deferred = { name: "b", defer_loading: true };
    expect(add({ tools: [{ name: "a" }, deferred, deferred] })).toEqual({
      tools: [{ name: "a", ...MARK }, deferred, deferred],
    });
    expect(add({ tools: [deferred] })).toEqual({ tools: [deferred] });
  });

  it("count one of the request as one of the 4", () => {
    const block = { type: "text", text: "Help.", ...MARK };
    const body = { ...MARK, system: [block, block], messages: [message("Hi")] };
    const added = add({ ...structuredClone(body), tools: [{ name: "a" }] });
    expect(count(added)).toBe(4);
    expect(added["tools"]).toEqual([{ name: "a" }]);
  });

  test("law: at most 4, those of the client stay, and nothing else changes", () => {
    const mark = fc.constantFrom({}, MARK, HOUR);
    const block = fc
      .tuple(fc.constantFrom("text", "thinking", "tool_result"), fc.string(), mark)
      .map(([type, text, of]) => ({ type, text, ...of }));
    const blocks = fc.array(block, { maxLength: 3 });
    const body = fc.record({
      tools: fc.array(
        mark.map((of) => ({ name: "t", ...of })),
        { maxLength: 2 },
      ),
      system: fc.oneof(fc.string(), blocks),
      messages: fc.array(
        blocks.map((content) => ({ role: "user", content })),
        { maxLength: 3 },
      ),
    });
    fc.assert(
      fc.property(body, (given) => {
        const before = structuredClone(given);
        const after = add(structuredClone(given) as unknown as JsonObject);
        const own = count(before);
        expect(count(after)).toBeLessThanOrEqual(Math.max(4, own));
        expect(count(after)).toBeGreaterThanOrEqual(own);
        for (const name of ["tools", "system", "messages"] as const)
          if (count(before[name]) > 0) expect(after[name]).toEqual(before[name]);
        const text = (value: unknown) =>
          typeof value === "string" ? [{ type: "text", text: value }] : value;
        expect(without({ ...after, system: text(after["system"]) })).toEqual(
          without({ ...before, system: text(before.system) }),
        );
      }),
      { numRuns: 100 },
    );
  });
});

it.each([0, 1, 2])("a changed prefix ends no request that can get %s more labels", async (room) => {
  const { ctx } = createTestContext({ id: "middleware.prompt-caches" });
  const options = { breakpoints: false, compare: true, conversations: 10 };
  const { prepare } = await promptCaches.setup(options as never, ctx);
  const labels: string[] = [];
  const exchange = {
    id: "request",
    actionType: "generate",
    operation: "chat",
    privacy: "off",
    headers: {},
    identity: { id: "key" },
    addLabel(name: string) {
      if (labels.length >= room) throw new Error("too many labels");
      labels.push(name);
    },
  };
  const call = { exchange, n: 1, id: "claude/m", protocol: "messages" };
  for (const system of [`one ${LONG}`, `two ${LONG}`]) {
    const body: JsonObject = { system, messages: [message(LONG)] };
    await prepare!({ get: (field: string) => body[field] } as never, call as never);
  }
  expect(labels).toEqual(["prompt_prefix", "prompt_prefix_at"].slice(0, room));
});

const ANSWER = {
  id: "m",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Yes" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 1, cache_read_input_tokens: 3 },
};

it("labels and logs a changed prefix, without a text of the request", async () => {
  await using up = await startUpstream({ "*": jsonResponse(ANSWER) });
  await using at = await startTestGateway({
    yaml: `
frontends: [messages, chat-completions]
middleware: [door, { use: prompt-caches, with: { breakpoints: true } }]
providers:
  claude: { use: anthropic-compatible, with: { base_url: "${up.url}/v1" } }
`,
  });
  const ask = async (system: string, messages: readonly JsonObject[]) => {
    const res = await fetch(`${at.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-claude-code-session-id": "s" },
      body: JSON.stringify({ model: "claude/m", max_tokens: 9, system, messages }),
    });
    expect(res.status).toBe(200);
  };
  const secret = `a secret ${LONG}`;
  await ask(secret, [message(LONG)]);
  await ask(secret, [message(LONG), message("Yes", "assistant"), message(LONG)]);
  await ask(`other ${secret}`, [message(LONG), message("Yes", "assistant"), message(LONG)]);
  await ask(`more ${secret}`, [message(LONG)]);
  const labels = at.storeCommands.flatMap((one) =>
    one.do === "reserve" ? [one.labels["prompt_prefix"]] : [],
  );
  expect(labels).toEqual([undefined, undefined, "instructions", "instructions"]);
  const places = at.storeCommands.flatMap((one) =>
    one.do === "reserve" ? [one.labels["prompt_prefix_at"]] : [],
  );
  expect(places).toEqual([undefined, undefined, "system 0-63", "system 1"]);
  const lines = at.logs.filter(({ message: text }) => text === "prompt prefix changed");
  expect(lines).toHaveLength(2);
  expect(lines[0]!.fields).toMatchObject({
    section: "instructions",
    path: "system",
    from: 0,
    to: 64,
  });
  expect(JSON.stringify(at.logs)).not.toContain("secret");
  expect(up.requests.at(-1)!.json().messages[0].content[0].cache_control).toEqual({
    type: "ephemeral",
  });
});

it("the report shows the place of the first difference by key and session", async () => {
  await using up = await startUpstream({ "*": jsonResponse(ANSWER) });
  await using at = await startTestGateway({
    yaml: `
frontends: [messages]
middleware: [door, prompt-caches]
store: memory
scopes: { session: { from: [session], limits: [requests=100/total] } }
providers:
  claude: { use: anthropic-compatible, with: { base_url: "${up.url}/v1" } }
`,
  });
  const ask = async (session: string, system: string) => {
    const res = await fetch(`${at.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-claude-code-session-id": session },
      body: JSON.stringify({
        model: "claude/m",
        max_tokens: 9,
        system,
        messages: [message(LONG)],
      }),
    });
    expect(res.status).toBe(200);
  };
  for (const minute of ["12:01", "12:02", "12:03", "12:04"])
    await ask("clock", `${LONG} ${minute} ${LONG}`);
  for (const _ of [1, 2, 3]) await ask("steady", LONG);
  const report = async (input: object) =>
    (await callControl(at.stateDir, "ledger.caches", input as never)) as any;
  const changes = [
    { place: "system 206", calls: 2 },
    { place: "system 192-255", calls: 1 },
  ];
  const { rows } = await report({ scope: "session" });
  expect(
    rows.map(({ name, calls, changed, differences }: any) => [name, calls, changed, differences]),
  ).toEqual([
    ["clock", 4, 3, changes],
    ["steady", 3, 0, []],
  ]);
  for (const input of [{ by: "key" }, { by: "model" }, { label: "session=clock" }])
    expect((await report(input)).rows).toMatchObject([{ changed: 3, differences: changes }]);
  expect((await report({ label: "session=steady" })).rows).toMatchObject([{ changed: 0 }]);
});
