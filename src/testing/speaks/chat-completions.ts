import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { eventStream, json, type ScriptedAnswer, type Piece } from "../answer.ts";
import type { Manner, SpokenItem, SpokenAnswer } from "../spoken.ts";
import { CREATED, shreds, words } from "./deltas.ts";

type Call = Extract<SpokenItem, { type: "call" }>;

/** OpenAI's chat completions, with `reasoning_content` as DeepSeek and many others write it. */
export function inChat(speech: SpokenAnswer, manner: Manner): ScriptedAnswer {
  return manner.stream ? stream(speech, manner) : whole(speech, manner);
}

const calls = (speech: SpokenAnswer) =>
  speech.said.filter((said): said is Call => said.type === "call");
const idOf = (call: Call, n: number, index: number) => call.id ?? `call_${n}_${index}`;
const text = (speech: SpokenAnswer, type: "text" | "refusal" | "reasoning") =>
  speech.said.map((said) => (said.type === type ? said.text : "")).join("");

function whole(speech: SpokenAnswer, { model, n }: Manner): ScriptedAnswer {
  const content = text(speech, "text");
  const refusal = text(speech, "refusal");
  const reasoning = text(speech, "reasoning");
  const called = calls(speech).map((call, i) => ({
    id: idOf(call, n, i),
    ...named(call, call.args),
  }));
  const answer = json({
    id: `chatcmpl-${n}`,
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
        finish_reason: finishOf(speech),
      },
    ],
    ...(speech.usage && { usage: usageOf(speech.usage) }),
  });
  return speech.usage
    ? { ...answer, body: { bytes: answer.body as string, tells: speech.usage } }
    : answer;
}

function stream(speech: SpokenAnswer, { model, n, body }: Manner): ScriptedAnswer {
  const options = body["stream_options"] as { include_usage?: boolean } | undefined;
  const tells = options?.include_usage === true;
  const chunk = (choices: Json, usage: Json = null) =>
    `data: ${JSON.stringify({
      id: `chatcmpl-${n}`,
      object: "chat.completion.chunk",
      created: CREATED,
      model,
      choices,
      ...(tells && { usage }),
    })}\n\n`;
  const delta = (fields: JsonObject, finish: string | null = null) =>
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);

  const events: Piece[] = [delta({ role: "assistant", content: "", refusal: null })];
  let index = 0;
  for (const said of speech.said) {
    if (said.type === "call") {
      events.push(delta({ tool_calls: [{ index, id: idOf(said, n, index), ...named(said, "") }] }));
      const field = said.custom ? "custom" : "function";
      for (const piece of shreds(said.args)) {
        const more = said.custom ? { input: piece } : { arguments: piece };
        events.push(delta({ tool_calls: [{ index, [field]: more }] }));
      }
      index++;
    } else {
      const field = { text: "content", refusal: "refusal", reasoning: "reasoning_content" }[
        said.type
      ];
      for (const piece of words(said.text)) events.push(delta({ [field]: piece }));
    }
  }
  if (speech.error !== undefined) {
    const error = {
      message: speech.error,
      type: "server_error",
      param: null,
      code: "server_error",
    };
    return eventStream([...events, `data: ${JSON.stringify({ error })}\n\n`]);
  }
  events.push(delta({}, finishOf(speech)));
  if (tells && speech.usage)
    events.push({ bytes: chunk([], usageOf(speech.usage)), tells: speech.usage });
  return eventStream([...events, "data: [DONE]\n\n"]);
}

const named = (call: Call, args: string): JsonObject =>
  call.custom
    ? { type: "custom", custom: { name: call.name, input: args } }
    : { type: "function", function: { name: call.name, arguments: args } };

const FINISH: { readonly [reason in FinishReason]: string } = {
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
const finishOf = (speech: SpokenAnswer) =>
  FINISH[speech.finish ?? (calls(speech).length > 0 ? "tool_calls" : "stop")];

/** Caches stand inside the prompt, reasoning inside the completion. */
function usageOf(u: Usage): JsonObject {
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
