// The documented `thinking` and `reasoning_effort`, in every form in which models accept reasoning
// settings: the same in both modes, because they share the last step.
import { describe, expect, test } from "vitest";
import {
  chatCompletions,
  type ReasoningTraits,
} from "../../../src/protocols/chat-completions/index.ts";
import { getFault } from "../../../src/plugin/index.ts";
import { createCallContext, createOutgoing } from "../../../src/testing/index.ts";

const FIELDS = [
  "thinking",
  "reasoning_effort",
  "reasoning",
  "enable_thinking",
  "thinking_budget",
  "chat_template_kwargs",
];

function told(
  reasoning: ReasoningTraits,
  wish: object,
): { said: object; losses: string[] } | { code: string | undefined } {
  const out = createOutgoing({ model: "m", messages: [{ role: "user", content: "x" }], ...wish });
  const of = createCallContext({ model: "m" });
  try {
    chatCompletions({ reasoning }).client!.prepare!(out, of);
  } catch (error) {
    return { code: getFault(error)?.code };
  }
  const said = Object.fromEntries(
    FIELDS.flatMap((f) => (out.get(f) === undefined ? [] : [[f, out.get(f)]])),
  );
  return { said, losses: of.losses.map((l) => `${l.how} ${l.field}`) };
}

const ON = { thinking: { type: "enabled" } };
const OFF = { thinking: { type: "disabled" } };
const HIGH = { reasoning_effort: "high" };
const MAX = { reasoning_effort: "max" };

describe("each control of reasoning", () => {
  test.each<[name: string, traits: ReasoningTraits, wish: object, said: object, losses?: string[]]>(
    [
      [
        "effort: on",
        { control: "effort", defaultEffort: "medium" },
        ON,
        { reasoning_effort: "medium" },
      ],
      ["effort: on, the model's own habit", { control: "effort" }, ON, {}],
      ["effort: off", { control: "effort" }, OFF, { reasoning_effort: "none" }],
      [
        "effort: off, and the least there is",
        { control: "effort", efforts: ["low", "high"] },
        OFF,
        { reasoning_effort: "low" },
        ["approximated thinking"],
      ],
      ["effort: as asked", { control: "effort", efforts: ["low", "high"] }, HIGH, HIGH],
      [
        "effort: the next lower",
        { control: "effort", efforts: ["low", "high"] },
        MAX,
        HIGH,
        ["approximated reasoning_effort"],
      ],
      [
        "effort: the lowest there is",
        { control: "effort", efforts: ["none", "high"] },
        { reasoning_effort: "low" },
        HIGH,
        ["approximated reasoning_effort"],
      ],
      ["thinking.type: on", { control: "thinking.type" }, ON, ON],
      [
        "thinking.type: effort none",
        { control: "thinking.type" },
        { reasoning_effort: "none" },
        OFF,
      ],
      [
        "thinking.type: an effort is thinking",
        { control: "thinking.type" },
        HIGH,
        ON,
        ["approximated reasoning_effort"],
      ],
      [
        "thinking.type: with efforts",
        { control: "thinking.type", alsoAcceptsEffort: true },
        HIGH,
        { ...ON, ...HIGH },
      ],
      [
        "thinking.type: keeps what else is said there",
        { control: "thinking.type" },
        { thinking: { type: "enabled", clear_thinking: false } },
        { thinking: { type: "enabled", clear_thinking: false } },
      ],
      ["enable_thinking: off", { control: "enable_thinking" }, OFF, { enable_thinking: false }],
      [
        "enable_thinking: an effort is a budget",
        { control: "enable_thinking" },
        HIGH,
        { enable_thinking: true, thinking_budget: 16384 },
        ["approximated reasoning_effort"],
      ],
      [
        "chat_template_kwargs: joins what is there",
        { control: "chat_template_kwargs" },
        { ...OFF, chat_template_kwargs: { x: 1 } },
        { chat_template_kwargs: { x: 1, enable_thinking: false } },
      ],
      [
        "chat_template_kwargs: another key",
        { control: "chat_template_kwargs", templateKwarg: "thinking" },
        ON,
        { chat_template_kwargs: { thinking: true } },
      ],
      [
        "reasoning.enabled",
        { control: "reasoning.enabled", alsoAcceptsEffort: true },
        HIGH,
        { ...HIGH, reasoning: { enabled: true } },
      ],
      ["reasoning: an effort", { control: "reasoning" }, HIGH, { reasoning: { effort: "high" } }],
      ["reasoning: off", { control: "reasoning" }, OFF, { reasoning: { enabled: false } }],
      ["none: on", { control: "none" }, ON, {}, ["dropped thinking"]],
      ["none: off is what it is", { control: "none" }, OFF, {}],
      ["no word about it: the client's own words pass", {}, { ...ON, ...HIGH }, { ...ON, ...HIGH }],
      ["nothing asked: nothing said", { control: "thinking.type" }, {}, {}],
      [
        "a model's own field is between it and its client",
        { control: "effort" },
        { enable_thinking: true },
        { enable_thinking: true },
      ],
    ],
  )("%s", (_, traits, wish, said, losses = []) => {
    expect(told(traits, wish)).toEqual({ said, losses });
  });

  test("a model that always reasons reports it, and another candidate is tried", () => {
    for (const control of ["effort", "thinking.type", "none"] as const)
      expect(told({ control, canDisable: false }, OFF)).toEqual({ code: "thinking_always_on" });
  });
});

describe("other edits", () => {
  const left = (dialect: Parameters<typeof chatCompletions>[0], body: object, stream = false) => {
    const out = createOutgoing({ model: "m", messages: [], ...body });
    const of = createCallContext({ model: "m", stream });
    chatCompletions(dialect).client!.prepare!(out, of);
    const { model: _, messages: __, ...fields } = out.body!;
    return {
      fields,
      losses: of.losses.map((l) => `${l.how} ${l.field}`),
      edited: out.editedFields,
    };
  };

  test("both names of the output limit become one, with the newer one's value", () => {
    expect(left({ maxTokens: "max_tokens" }, { max_completion_tokens: 5 }).fields).toEqual({
      max_tokens: 5,
    });
    expect(left({ maxTokens: "max_completion_tokens" }, { max_tokens: 5 }).fields).toEqual({
      max_completion_tokens: 5,
    });
    expect(
      left({ maxTokens: "max_tokens" }, { max_tokens: 9, max_completion_tokens: 5 }).fields,
    ).toEqual({ max_tokens: 5 });
    expect(left({ maxTokens: "max_tokens" }, { max_tokens: 9 }).edited).toEqual(["max_tokens"]);
    expect(left({}, { max_tokens: 9 }).edited).toEqual([]);
  });

  test("usage is requested in every stream, and only there", () => {
    expect(left({}, {}, true).fields).toEqual({ stream_options: { include_usage: true } });
    expect(
      left({}, { stream_options: { include_usage: false, include_obfuscation: false } }, true)
        .fields,
    ).toEqual({
      stream_options: { include_usage: true, include_obfuscation: false },
    });
    expect(left({}, { stream_options: { include_usage: true } }, true).edited).toEqual([]);
    expect(left({}, { stream_options: { include_usage: true } }).fields).toEqual({});
    expect(
      left({ streamUsage: "none" }, { stream_options: { include_usage: true } }, true).fields,
    ).toEqual({});
  });

  test("dropped fields are reported, fields without effect are not", () => {
    expect(
      left({ dropFields: ["store", "metadata", "user"] }, { store: false, metadata: { a: "b" } }),
    ).toMatchObject({
      fields: {},
      losses: ["dropped metadata"],
    });
    expect(left({ renameFields: { seed: "random_seed" } }, { seed: 3 })).toMatchObject({
      fields: { random_seed: 3 },
      losses: [],
    });
  });

  test("fields that change the task are rejected", () => {
    expect(left({ rejectFields: ["n", "logprobs"] }, { n: 1, logprobs: false }).fields).toEqual({});
    expect(() => left({ rejectFields: ["n"] }, { n: 2 })).toThrow(/does not support n/);
    expect(() =>
      left({ toolChoice: "auto" }, { tools: [{ type: "function" }], tool_choice: "required" }),
    ).toThrow(/does not support a forced tool choice/);
    expect(
      left({ toolChoice: "auto" }, { tools: [{ type: "function" }], tool_choice: "none" }),
    ).toMatchObject({
      fields: {},
      losses: ["approximated tools"],
    });
    expect(
      left({ toolChoice: "any" }, { tools: [{ type: "function" }], tool_choice: "required" })
        .fields,
    ).toMatchObject({ tool_choice: "any" });
  });

  test("envelopes with other providers' proofs never reach a chat upstream", async () => {
    const { seal } = await import("../../../src/protocols/proof-envelope.ts");
    const data = seal({ proof: { origin: "messages", kind: "signature", data: "S" }, text: "t" });
    const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
    const messages = [
      {
        role: "assistant",
        content: "a",
        reasoning_content: "t",
        reasoning_details: [{ type: "reasoning.encrypted", data, format: "tollgate-v1" }],
      },
      {
        role: "assistant",
        content: "a",
        reasoning_details: [
          { type: "reasoning.text", text: "own" },
          { type: "reasoning.encrypted", data },
        ],
      },
      {
        role: "assistant",
        tool_calls: [{ ...call, extra_content: { google: { thought_signature: data } } }],
      },
      {
        role: "assistant",
        tool_calls: [{ ...call, extra_content: { google: { thought_signature: "own" } } }],
      },
    ];
    expect(left({}, { messages }).fields).toEqual({});
    const out = createOutgoing({ model: "m", messages });
    chatCompletions().client!.prepare!(out, createCallContext());
    expect(out.get("messages")).toEqual([
      { role: "assistant", content: "a", reasoning_content: "t" },
      {
        role: "assistant",
        content: "a",
        reasoning_details: [{ type: "reasoning.text", text: "own" }],
      },
      { role: "assistant", tool_calls: [call] },
      messages[3],
    ]);
  });

  test("a limit lowers the requested one, under either name", () => {
    const capped = (body: object, dialect = {}) => {
      const out = createOutgoing({ ...body });
      chatCompletions(dialect).client!.capOutput!(out, 100);
      return out.body;
    };
    expect(capped({})).toEqual({ max_completion_tokens: 100 });
    expect(capped({}, { maxTokens: "max_tokens" })).toEqual({ max_tokens: 100 });
    expect(capped({ max_tokens: 50 })).toEqual({ max_tokens: 50 });
    expect(capped({ max_tokens: 500, max_completion_tokens: 400 })).toEqual({
      max_tokens: 100,
      max_completion_tokens: 100,
    });
  });
});
