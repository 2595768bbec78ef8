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
  CREATED,
  splitArguments,
  splitWords,
} from "../script-pieces.ts";

/** Writes a script in OpenAI's responses format. */
export function toResponses(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  return manner.stream ? streamedResponse(speech, manner) : wholeResponse(speech, manner);
}

function wholeResponse(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  const answer = jsonResponse(finalResponse(speech, manner));
  return speech.usage
    ? { ...answer, body: { bytes: answer.body as string, tells: speech.usage } }
    : answer;
}

const finalResponse = (speech: ScriptOutput, manner: FormatOptions): JsonObject => ({
  ...buildResponse(
    manner,
    responseStatus(speech),
    speech.items.map((item, i) => doneItem(item, manner, i)),
  ),
  completed_at: CREATED + 1,
  incomplete_details: incompleteDetails(speech),
  usage: speech.usage ? toResponsesUsage(speech.usage) : null,
});

const incompleteDetails = ({ finish }: ScriptOutput) =>
  finish === "length" || finish === "context"
    ? { reason: "max_output_tokens" }
    : finish === "filtered"
      ? { reason: "content_filter" }
      : null;
const responseStatus = (speech: ScriptOutput) =>
  incompleteDetails(speech) ? "incomplete" : "completed";

/** Returns a response with all keys that the published schema requires. */
function buildResponse(
  { model, responseNumber, body }: FormatOptions,
  status: string,
  output: JsonObject[],
): JsonObject {
  return {
    id: `resp_${responseNumber}`,
    object: "response",
    created_at: CREATED,
    completed_at: null,
    status,
    incomplete_details: null,
    error: null,
    model,
    previous_response_id: null,
    instructions: (body["instructions"] as string | undefined) ?? null,
    output,
    tools: body["tools"] ?? [],
    tool_choice: body["tool_choice"] ?? "auto",
    truncation: "disabled",
    parallel_tool_calls: true,
    text: body["text"] ?? { format: { type: "text" } },
    top_p: 1,
    temperature: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    reasoning: { effort: null, summary: null },
    usage: null,
    max_output_tokens: null,
    max_tool_calls: null,
    store: false,
    background: false,
    service_tier: "default",
    metadata: {},
    safety_identifier: null,
    prompt_cache_key: null,
  };
}

const ID_PREFIXES = { text: "msg", refusal: "msg", reasoning: "rs", call: "fc" } as const;
const itemId = (item: ScriptItem, n: number, index: number) =>
  `${item.type === "call" && item.custom ? "ctc" : ID_PREFIXES[item.type]}_${n}_${index}`;

function contentPart(
  item: Extract<ScriptItem, { type: "text" | "refusal" }>,
  text: string,
): JsonObject {
  return item.type === "text"
    ? { type: "output_text", text, annotations: [], logprobs: [] }
    : { type: "refusal", refusal: text };
}

/**
 * Returns the name of a tool as the request declares it. A tool in a namespace is scripted by the
 * flat name that other protocols have for it, such as `agents__spawn`.
 */
function declaredName(name: string, { tools }: FormatOptions["body"]): JsonObject {
  for (const declared of Array.isArray(tools) ? (tools as JsonObject[]) : []) {
    const namespace = declared["name"];
    if (declared["type"] !== "namespace" || typeof namespace !== "string") continue;
    if (name.startsWith(`${namespace}__`))
      return { name: name.slice(namespace.length + 2), namespace };
  }
  return { name };
}

function newItem(
  item: ScriptItem,
  { responseNumber: n, body }: FormatOptions,
  index: number,
): JsonObject {
  const id = itemId(item, n, index);
  switch (item.type) {
    case "text":
    case "refusal":
      return { id, type: "message", status: "in_progress", role: "assistant", content: [] };
    case "reasoning":
      return { id, type: "reasoning", summary: [] };
    case "call": {
      const about = {
        call_id: item.id ?? `call_${n}_${index}`,
        ...declaredName(item.name, body),
      };
      return item.custom
        ? { id, type: "custom_tool_call", status: "in_progress", ...about, input: "" }
        : { id, type: "function_call", status: "in_progress", ...about, arguments: "" };
    }
  }
}

function doneItem(item: ScriptItem, manner: FormatOptions, index: number): JsonObject {
  const added = newItem(item, manner, index);
  switch (item.type) {
    case "text":
    case "refusal":
      return { ...added, status: "completed", content: [contentPart(item, item.text)] };
    case "reasoning":
      return {
        ...added,
        summary: item.text === "" ? [] : [{ type: "summary_text", text: item.text }],
        ...(item.proof !== undefined && { encrypted_content: item.proof }),
      };
    case "call":
      return { ...added, status: "completed", [item.custom ? "input" : "arguments"]: item.args };
  }
}

function streamedResponse(speech: ScriptOutput, manner: FormatOptions): ScriptedResponse {
  let sequence_number = 0;
  const event = (type: string, fields: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...fields })}\n\n`;
  const response = buildResponse(manner, "in_progress", []);
  const events: ResponsePiece[] = [
    event("response.created", { response }),
    event("response.in_progress", { response }),
  ];
  speech.items.forEach((item, output_index) => {
    const item_id = itemId(item, manner.responseNumber, output_index);
    events.push(
      event("response.output_item.added", {
        output_index,
        item: newItem(item, manner, output_index),
      }),
    );
    for (const [type, fields] of innerEvents(item))
      events.push(event(`response.${type}`, { item_id, output_index, ...fields }));
    events.push(
      event("response.output_item.done", {
        output_index,
        item: doneItem(item, manner, output_index),
      }),
    );
  });
  if (speech.error !== undefined) {
    const error = { code: "server_error", message: speech.error };
    const failed = { ...response, status: "failed", error };
    return eventStreamResponse([
      ...events,
      event("error", { ...error, param: null }),
      event("response.failed", { response: failed }),
    ]);
  }
  const last = event(`response.${responseStatus(speech)}`, {
    response: finalResponse(speech, manner),
  });
  events.push(speech.usage ? { bytes: last, tells: speech.usage } : last);
  return eventStreamResponse(events);
}

/** Returns the events between the `added` and the `done` event of an item. */
function innerEvents(item: ScriptItem): [type: string, fields: JsonObject][] {
  switch (item.type) {
    case "text":
    case "refusal": {
      const at = { content_index: 0 };
      const name = item.type === "text" ? "output_text" : "refusal";
      const logprobs = item.type === "text" && { logprobs: [] };
      return [
        ["content_part.added", { ...at, part: contentPart(item, "") }],
        ...splitWords(item.text).map((delta): [string, JsonObject] => [
          `${name}.delta`,
          { ...at, delta, ...logprobs },
        ]),
        [`${name}.done`, { ...at, [item.type]: item.text, ...logprobs }],
        ["content_part.done", { ...at, part: contentPart(item, item.text) }],
      ];
    }
    case "reasoning": {
      if (item.text === "") return [];
      const at = { summary_index: 0 };
      const part = (text: string) => ({ ...at, part: { type: "summary_text", text } });
      return [
        ["reasoning_summary_part.added", part("")],
        ...splitWords(item.text).map((delta): [string, JsonObject] => [
          "reasoning_summary_text.delta",
          { ...at, delta },
        ]),
        ["reasoning_summary_text.done", { ...at, text: item.text }],
        ["reasoning_summary_part.done", part(item.text)],
      ];
    }
    case "call": {
      const name = item.custom ? "custom_tool_call_input" : "function_call_arguments";
      return [
        ...splitArguments(item.args).map((delta): [string, JsonObject] => [
          `${name}.delta`,
          { delta },
        ]),
        [
          `${name}.done`,
          item.custom ? { input: item.args } : { name: item.name, arguments: item.args },
        ],
      ];
    }
  }
}

/** In this format, cached tokens are included in the input, and reasoning tokens in the output. */
function toResponsesUsage(u: Usage): JsonObject {
  const written = (u.cache_write_5m ?? 0) + (u.cache_write_1h ?? 0) + (u.cache_write_30m ?? 0);
  const input = (u.input ?? 0) + (u.cache_read ?? 0) + written;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: u.cache_read ?? 0, cache_write_tokens: written },
    output_tokens: u.output ?? 0,
    output_tokens_details: { reasoning_tokens: u.reasoning ?? 0 },
    total_tokens: input + (u.output ?? 0),
  };
}
