// Whether the outgoing request may cause reasoning that no client sees: no only if this is certain,
// because a truncated response is billed with it.
import { describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { createCallContext, createOutgoing } from "tollgate/testing";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { upstreams } from "./generators/codecs.ts";

const thinks = (protocol: Protocol<"chat">, body: object, model = "m", can?: object) =>
  protocol.client!.mayHideReasoning!(
    createOutgoing(body as never),
    createCallContext({ model, info: { model, operation: "chat", can } as never }),
  );

const OFF_WORDS: readonly object[] = [
  { reasoning_effort: "none" },
  { reasoning: { effort: "none" } },
  { reasoning: { enabled: false } },
  { thinking: { type: "disabled" } },
  { enable_thinking: false },
  { chat_template_kwargs: { enable_thinking: false } },
  { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
];

it.each([{}, { reasoning_effort: "low" }, { thinking: { type: "enabled" } }, ...OFF_WORDS])(
  "chat completions of an unknown backend: %j may cause reasoning",
  (body) => expect(thinks(chatCompletions(), body)).toBe(true),
);

it.each([
  ["effort", { reasoning_effort: "none" }],
  ["thinking.type", { thinking: { type: "disabled" } }],
  ["enable_thinking", { enable_thinking: false }],
  ["chat_template_kwargs", { chat_template_kwargs: { enable_thinking: false } }],
  ["reasoning.enabled", { reasoning: { enabled: false } }],
  ["reasoning", { reasoning: { effort: "none" } }],
] as const)("chat completions, %s: only its own setting disables reasoning", (control, own) => {
  const protocol = chatCompletions({ reasoning: { control } });
  expect(thinks(protocol, own)).toBe(false);
  for (const other of OFF_WORDS)
    if (Object.keys(other)[0] !== Object.keys(own)[0])
      expect(thinks(protocol, other), JSON.stringify(other)).toBe(true);
  expect(thinks(chatCompletions({ reasoning: { control, canDisable: false } }), own)).toBe(true);
});

it("a model that reasons documents reasoning_effort", () => {
  const known = (body: object) => thinks(chatCompletions(), body, "m", { reasoning: true });
  expect(known({ reasoning_effort: "none" })).toBe(false);
  expect(known({ enable_thinking: false })).toBe(true);
});

it.each([
  [{}, true],
  [{ reasoning: { effort: "low" } }, true],
  [{ reasoning: { effort: "none" } }, false],
])("responses %j: %s", (body, may) => expect(thinks(responses(), body)).toBe(may));

it.each([
  [{}, true],
  [{ generationConfig: { thinkingConfig: { thinkingBudget: 512 } } }, true],
  [{ generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }, false],
])("gemini %j: %s", (body, may) => expect(thinks(gemini(), body)).toBe(may));

it.each([
  ["claude-opus-4-8", {}, false],
  ["claude-opus-4-8", { thinking: { type: "adaptive" } }, true],
  ["claude-opus-4-8", { thinking: { type: "disabled" } }, false],
  ["claude-sonnet-4-5", { thinking: { type: "enabled", budget_tokens: 2048 } }, true],
  ["claude-fable-5", {}, true],
  ["claude-fable-5", { reasoning_effort: "none" }, true],
  ["claude-opus-4-8", { reasoning_effort: "none" }, false],
  ["claude-3-5-haiku", {}, false],
])("messages, %s %j: %s", (model, body, may) =>
  expect(thinks(messages(claude), body, model)).toBe(may),
);

describe("of conflicting settings, one that enables reasoning counts", () => {
  const ON: readonly object[] = [
    { reasoning_effort: "high" },
    { reasoning: { effort: "low" } },
    { reasoning: { enabled: true } },
    { thinking: { type: "enabled", budget_tokens: 2048 } },
    { enable_thinking: true },
    { thinking_budget: 512 },
    { chat_template_kwargs: { enable_thinking: true } },
    { generationConfig: { thinkingConfig: { thinkingBudget: 512 } } },
  ];
  const OFF: readonly object[] = [
    { reasoning_effort: "none" },
    { reasoning: { effort: "none" } },
    { reasoning: { enabled: false } },
    { thinking: { type: "disabled" } },
    { enable_thinking: false },
    { chat_template_kwargs: { enable_thinking: false } },
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  ];
  it.each(Object.entries({ ...upstreams, claude: messages(claude) }))("%s", (_name, protocol) => {
    for (const on of ON)
      for (const off of OFF) {
        const [[field]] = Object.entries(on) as [[string, unknown]];
        if (field in off) continue;
        expect(thinks(protocol, { ...off, ...on }), JSON.stringify({ ...off, ...on })).toBe(true);
      }
  });
});
