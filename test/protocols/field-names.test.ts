// An error and a warning use the client's name of the field, whatever another protocol calls it.
import { describe, expect, test } from "vitest";
import { getFault, type Body, type ChatRequest, type Protocol } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createCallContext, encodeOutgoing } from "tollgate/testing";

const schema = { type: "object", properties: { a: { type: "string" } } };
/** Fields that another protocol may not support, one at a time, in each protocol's own names. */
const DOORS: readonly [Protocol, base: Body, knobs: Body][] = [
  [
    chatCompletions(),
    { model: "m", messages: [{ role: "user", content: "Hi" }] },
    {
      max_tokens: 3,
      max_completion_tokens: 3,
      stop: ["a", "b", "c", "d"],
      n: 2,
      seed: 2 ** 40,
      logprobs: true,
      logit_bias: { 5: 1 },
      reasoning_effort: "none",
      thinking: { type: "disabled" },
      response_format: { type: "json_schema", json_schema: { name: "x", schema, strict: false } },
      user: "a@b.example",
      safety_identifier: "x".repeat(99),
      metadata: { a: "b" },
      verbosity: "low",
      parallel_tool_calls: false,
      modalities: ["text", "audio"],
      service_tier: "flex",
      prompt_cache_key: "k",
      temperature: 1.7,
      web_search_options: { search_context_size: "high" },
      presence_penalty: 1,
    },
  ],
  [
    messages(),
    { model: "m", max_tokens: 99, messages: [{ role: "user", content: "Hi" }] },
    {
      max_tokens: 3,
      stop_sequences: ["a", "b", "c", "d", "e", "f"],
      top_k: 5,
      thinking: { type: "enabled", budget_tokens: 2000 },
      output_config: { effort: "max", format: { type: "json_schema", schema } },
      metadata: { user_id: "a@b.example" },
      system: [{ type: "text", text: "S", cache_control: { type: "ephemeral" } }],
      service_tier: "standard_only",
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      cache_control: { type: "ephemeral" },
      container: "c",
    },
  ],
  [
    responses(),
    { model: "m", input: "Hi" },
    {
      max_output_tokens: 3,
      reasoning: { effort: "none", summary: "auto" },
      text: { verbosity: "low", format: { type: "json_schema", name: "x", schema, strict: false } },
      instructions: "S",
      user: "a@b.example",
      safety_identifier: "x".repeat(99),
      metadata: { a: "b" },
      parallel_tool_calls: false,
      previous_response_id: "resp_1",
      background: true,
      conversation: "conv_1",
      truncation: "auto",
      top_logprobs: 3,
      service_tier: "flex",
      temperature: 1.7,
    },
  ],
];
const TARGETS = [chatCompletions(), messages(), responses(), gemini({ thinking: "level" })];
const tools = {
  "chat-completions": {
    type: "function",
    function: { name: "f", parameters: schema, strict: true },
  },
  messages: { name: "f", input_schema: schema },
  responses: { type: "function", name: "f", parameters: schema },
};

const CASES = DOORS.flatMap(([door, base, knobs]) =>
  Object.entries(knobs).flatMap(([field, value]) =>
    TARGETS.filter((target) => target.id !== door.id).map((target) => ({
      door,
      target,
      field,
      body: {
        ...base,
        ...(/tool/.test(field) && { tools: [tools[door.id as "messages"]] }),
        ...(field === "top_logprobs" && { include: ["message.output_text.logprobs"] }),
        [field]: value,
      } as Body,
    })),
  ),
);

/** Every name at every depth. */
const keys = (of: unknown): string[] =>
  typeof of === "object" && of !== null
    ? Object.entries(of).flatMap(([key, value]) => [key, ...keys(value)])
    : [];

describe.each(CASES)("$door.id to $target.id", ({ door, target, field, body }) => {
  test(field, () => {
    const of = createCallContext();
    const named: string[] = [];
    try {
      encodeOutgoing(
        target.client!,
        door.server!.decodeRequest(body, "generate") as ChatRequest,
        of,
      );
    } catch (error) {
      named.push(getFault(error)!.param ?? field);
    }
    named.push(...of.losses.map((loss) => loss.field));
    // The client's own field, and possible ones: a default is reported by the field that sets it.
    const known = new Set([...keys(body), ...keys(DOORS.find(([one]) => one === door)!.slice(1))]);
    for (const name of named) {
      const said = door.server!.clientFieldName!(name, body);
      expect([...known], `${name}, spelt ${said}`).toContain(said.split(/[.[]/, 1)[0]);
    }
  });
});
