// Whether what leaves may be answered with thought that no client sees: no only where that is certain, since what breaks off is
// billed with room for it.
import { describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { asking, outgoing } from "tollgate/testing";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { upstreams } from "./codecs.ts";

const thinks = (protocol: Protocol<"chat">, body: object, model = "m") =>
  protocol.client!.thinks!(outgoing(body as never), asking({ model }));

it.each([
  [{}, true],
  [{ reasoning_effort: "low" }, true],
  [{ reasoning: { effort: "high" } }, true],
  [{ thinking: { type: "enabled" } }, true],
  [{ reasoning_effort: "none" }, false],
  [{ reasoning: { effort: "none" } }, false],
  [{ reasoning: { enabled: false } }, false],
  [{ thinking: { type: "disabled" } }, false],
  [{ enable_thinking: false }, false],
])("chat completions %j: %s", (body, may) => expect(thinks(chatCompletions(), body)).toBe(may));

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
  ["claude-3-5-haiku", {}, false],
])("messages, %s %j: %s", (model, body, may) =>
  expect(thinks(messages(claude), body, model)).toBe(may),
);

describe("of words that contradict each other, one that switches thought on is believed", () => {
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
