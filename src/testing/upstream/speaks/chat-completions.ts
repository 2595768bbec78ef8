import type { FinishReason } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
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
  CREATED,
  splitArguments,
  splitWords,
} from "../script-pieces.ts";

type ToolCallItem = Extract<ScriptItem, { type: "call" }>;

/**
 * Writes a script in OpenAI's chat completions format, with `reasoning_content` as DeepSeek and
 * many others send it.
 */
export function toChatCompletions(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  return manner.stream ? streamedResponse(speech, manner) : wholeResponse(speech, manner);
}

const toolCalls = (speech: ScriptOutput) =>
  speech.items.filter((item): item is ToolCallItem => item.type === "call");
const toolCallId = (call: ToolCallItem, n: number, index: number) =>
  call.id ?? `call_${n}_${index}`;
const joinText = (speech: ScriptOutput, type: "text" | "refusal" | "reasoning") =>
  speech.items.map((item) => (item.type === type ? item.text : "")).join("");

function wholeResponse(
  speech: ScriptOutput,
  { model, responseNumber }: FormatOptions,
): ScriptedResponse {
  const content = joinText(speech, "text");
  const refusal = joinText(speech, "refusal");
  const reasoning = joinText(speech, "reasoning");
  const called = toolCalls(speech).map((call, i) => ({
    id: toolCallId(call, responseNumber, i),
    ...toolFunction(call, call.args),
  }));
  const answer = jsonResponse({
    id: `chatcmpl-${responseNumber}`,
    object: "chat.completion",
    created: CREATED,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: content === "" && (called.length > 0 || refusal !== "") ? null : content,
          refusal: refusal === "" ? null : refusal,
          ...(reasoning !== "" && { reasoning_content: reasoning }),
          ...(called.length > 0 && { tool_calls: called }),
        },
        logprobs: null,
        finish_reason: finishReason(speech),
      },
    ],
    ...(speech.usage && { usage: toChatUsage(speech.usage) }),
  });
  return speech.usage
    ? { ...answer, body: { bytes: answer.body as string, tells: speech.usage } }
    : answer;
}

function streamedResponse(
  speech: ScriptOutput,
  { model, responseNumber, body }: FormatOptions,
): ScriptedResponse {
  const options = body["stream_options"] as { include_usage?: boolean } | undefined;
  const tells = options?.include_usage === true;
  const chunk = (choices: Json, usage: Json = null) =>
    `data: ${JSON.stringify({
      id: `chatcmpl-${responseNumber}`,
      object: "chat.completion.chunk",
      created: CREATED,
      model,
      choices,
      ...(tells && { usage }),
    })}\n\n`;
  const delta = (fields: JsonObject, finish: string | null = null) =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);

  const events: ResponsePiece[] = [delta({ role: "assistant", content: "", refusal: null })];
  let index = 0;
  for (const item of speech.items) {
    if (item.type === "call") {
      events.push(
        delta({
          tool_calls: [
            { index, id: toolCallId(item, responseNumber, index), ...toolFunction(item, "") },
          ],
        }),
      );
      const field = item.custom ? "custom" : "function";
      for (const piece of splitArguments(item.args)) {
        const more = item.custom ? { input: piece } : { arguments: piece };
        events.push(delta({ tool_calls: [{ index, [field]: more }] }));
      }
      index++;
    } else {
      const field = { text: "content", refusal: "refusal", reasoning: "reasoning_content" }[
        item.type
      ];
      for (const piece of splitWords(item.text)) events.push(delta({ [field]: piece }));
    }
  }
  if (speech.error !== undefined) {
    const error = {
      message: speech.error,
      type: "server_error",
      param: null,
      code: "server_error",
    };
    return eventStreamResponse([...events, `data: ${JSON.stringify({ error })}\n\n`]);
  }
  events.push(delta({}, finishReason(speech)));
  if (tells && speech.usage)
    events.push({ bytes: chunk([], toChatUsage(speech.usage)), tells: speech.usage });
  return eventStreamResponse([...events, "data: [DONE]\n\n"]);
}

const toolFunction = (call: ToolCallItem, args: string): JsonObject =>
  call.custom
    ? { type: "custom", custom: { name: call.name, input: args } }
    : { type: "function", function: { name: call.name, arguments: args } };

const FINISH_REASONS: { readonly [reason in FinishReason]: string } = {
  stop: "stop",
  stop_sequence: "stop",
  length: "length",
  context: "length",
  tool_calls: "tool_calls",
  filtered: "content_filter",
  refusal: "stop",
  pause: "stop",
  other: "stop",
};
const finishReason = (speech: ScriptOutput) =>
  FINISH_REASONS[speech.finish ?? (toolCalls(speech).length > 0 ? "tool_calls" : "stop")];

/**
 * In this format, cached tokens are included in the prompt tokens, and reasoning tokens in the
 * completion tokens.
 */
function toChatUsage(u: Usage): JsonObject {
  const written = (u.cache_write_5m ?? 0) + (u.cache_write_1h ?? 0) + (u.cache_write_30m ?? 0);
  const prompt = (u.input ?? 0) + (u.cache_read ?? 0) + written;
  const completion = u.output ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: u.cache_read ?? 0,
      ...(written > 0 && { cache_write_tokens: written }),
    },
    completion_tokens_details: { reasoning_tokens: u.reasoning ?? 0 },
  };
}
