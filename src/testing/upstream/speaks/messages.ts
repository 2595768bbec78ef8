import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import {
  eventStreamResponse,
  jsonResponse,
  type ScriptedResponse,
  type ResponsePiece,
} from "../scripted-response.ts";
import {
  type FormatOptions,
  type ScriptItem,
  type ScriptOutput,
  splitArguments,
  splitWords,
} from "../script-pieces.ts";

/** Writes a script in Anthropic's messages format. */
export function toMessagesResponse(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  return manner.stream ? streamedResponse(speech, manner) : wholeResponse(speech, manner);
}

function wholeResponse(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  const answer = jsonResponse({
    ...messageStart(manner),
    content: speech.items.map((item, i) => fullBlock(item, manner.responseNumber, i)),
    ...messageEnd(speech),
    ...(speech.usage && { usage: toMessagesUsage(speech.usage, true) }),
  });
  return speech.usage
    ? { ...answer, body: { bytes: answer.body as string, tells: speech.usage } }
    : answer;
}

const messageStart = ({ model, responseNumber }: FormatOptions) => ({
  id: `msg_${responseNumber}`,
  type: "message",
  role: "assistant",
  model,
  container: null,
  diagnostics: null,
});

function fullBlock(item: ScriptItem, n: number, index: number): JsonObject {
  const block = emptyBlock(item, n, index);
  switch (item.type) {
    case "text":
    case "refusal":
      return { ...block, text: item.text };
    case "reasoning":
      return block["type"] === "redacted_thinking"
        ? block
        : { ...block, thinking: item.text, signature: item.proof ?? "" };
    case "call":
      return { ...block, input: item.args === "" ? {} : JSON.parse(item.args) };
  }
}

function emptyBlock(item: ScriptItem, n: number, index: number): JsonObject {
  switch (item.type) {
    case "text":
    case "refusal":
      return { type: "text", text: "", citations: null };
    case "reasoning":
      return item.text === "" && item.proof !== undefined
        ? { type: "redacted_thinking", data: item.proof }
        : { type: "thinking", thinking: "", signature: "" };
    case "call":
      return {
        type: "tool_use",
        id: item.id ?? `toolu_${n}_${index}`,
        name: item.name,
        input: {},
        caller: { type: "direct" },
      };
  }
}

function streamedResponse(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  const event = (type: string, fields: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const events: ResponsePiece[] = [
    event("message_start", {
      message: {
        ...messageStart(manner),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        ...(speech.usage && {
          usage: toMessagesUsage({ ...speech.usage, output: 1, reasoning: undefined }, true),
        }),
      },
    }),
    event("ping", {}),
  ];
  speech.items.forEach((item, index) => {
    const block = emptyBlock(item, manner.responseNumber, index);
    events.push(event("content_block_start", { index, content_block: block }));
    for (const delta of blockDeltas(item, block))
      events.push(event("content_block_delta", { index, delta }));
    events.push(event("content_block_stop", { index }));
  });
  if (speech.error !== undefined) {
    const error = { type: "overloaded_error", message: speech.error };
    return eventStreamResponse([
      ...events,
      event("error", { error, request_id: `req_${manner.responseNumber}` }),
    ]);
  }
  const last = event("message_delta", {
    delta: { ...messageEnd(speech), container: null },
    ...(speech.usage && { usage: toMessagesUsage(speech.usage, false) }),
  });
  events.push(speech.usage ? { bytes: last, tells: speech.usage } : last);
  return eventStreamResponse([...events, event("message_stop", {})]);
}

function blockDeltas(item: ScriptItem, block: JsonObject): JsonObject[] {
  switch (item.type) {
    case "text":
    case "refusal":
      return splitWords(item.text).map((text) => ({ type: "text_delta", text }));
    case "reasoning":
      if (block["type"] === "redacted_thinking") return [];
      return [
        ...splitWords(item.text).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: item.proof ?? "" },
      ];
    case "call":
      return ["", ...splitArguments(item.args)].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      }));
  }
}

const FINISH_REASONS: { readonly [reason in FinishReason]: string } = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  context: "model_context_window_exceeded",
  tool_calls: "tool_use",
  filtered: "refusal",
  refusal: "refusal",
  pause: "pause_turn",
  other: "end_turn",
};

function messageEnd(speech: ScriptOutput) {
  const called = speech.items.some((item) => item.type === "call");
  const refused = speech.items.some((item) => item.type === "refusal");
  const reason = speech.finish ?? (called ? "tool_calls" : refused ? "refusal" : "stop");
  return {
    stop_reason: FINISH_REASONS[reason],
    stop_sequence: reason === "stop_sequence" ? (speech.sequence ?? "END") : null,
    stop_details:
      FINISH_REASONS[reason] === "refusal"
        ? { type: "refusal", category: null, explanation: null }
        : null,
  };
}

/**
 * In this format, cached tokens are counted separately from the input, and thinking tokens are
 * included in the output.
 */
function toMessagesUsage(u: Usage, full: boolean): JsonObject {
  const fiveMinutes = u.cache_write_5m ?? 0;
  const oneHour = u.cache_write_1h ?? 0;
  return {
    input_tokens: u.input ?? 0,
    cache_creation_input_tokens: fiveMinutes + oneHour,
    cache_read_input_tokens: u.cache_read ?? 0,
    ...(full && {
      cache_creation: {
        ephemeral_5m_input_tokens: fiveMinutes,
        ephemeral_1h_input_tokens: oneHour,
      },
    }),
    output_tokens: u.output ?? 0,
    output_tokens_details: u.reasoning === undefined ? null : { thinking_tokens: u.reasoning },
    server_tool_use: u.searches === undefined ? null : { web_search_requests: u.searches },
    ...(full && { service_tier: "standard", speed: null, inference_geo: null }),
  };
}
