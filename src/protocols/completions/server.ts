// The half of the completions protocol that faces clients.
import type { FinishReason, ModelResponse, ModelEvent } from "../../model/event.ts";
import type { CompletionRequest } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, Json, Opt, JsonObject } from "../../model/values.ts";
import type { ResponseContext, Encoder } from "../../plugin/protocol.ts";
import { asBoolean, asList, asNumber, omitUndefined, asText, asObject } from "../json-values.ts";
import { encodeFault } from "../failure/openai-error.ts";
import { unknownTopLevelFields, ownFields } from "../unknown-fields.ts";
import { COMMON_FIELDS, ID, PROTOCOL_FIELDS, usageTo, promptsIn } from "./spec.ts";

/** Decodes a request body into the common form. */
export function decodeRequest(body: Body): CompletionRequest {
  return omitUndefined({
    operation: "completion" as const,
    model: asText(body["model"]) ?? "",
    stream: asBoolean(body["stream"]) ?? false,
    prompts: promptsIn(body["prompt"]),
    suffix: asText(body["suffix"]),
    maxTokens: asNumber(body["max_tokens"]),
    stop: stopsIn(body["stop"]),
    sampling: omitUndefined({
      temperature: asNumber(body["temperature"]),
      topP: asNumber(body["top_p"]),
      seed: asNumber(body["seed"]),
      n: asNumber(body["n"]),
      presence: asNumber(body["presence_penalty"]),
      frequency: asNumber(body["frequency_penalty"]),
    }),
    user: asText(body["user"]),
    rest: unknownTopLevelFields(
      body,
      (name) =>
        body[name] === null || COMMON_FIELDS.includes(name) || PROTOCOL_FIELDS.includes(name),
    ),
    ext: ownFields(ID, body, PROTOCOL_FIELDS),
  });
}

const stopsIn = (value: unknown): Opt<readonly string[]> =>
  typeof value === "string"
    ? [value]
    : Array.isArray(value)
      ? asList(value).flatMap((one) => asText(one) ?? [])
      : undefined;

/** Fields that streaming and non-streaming responses share. */
export const responseFrame = (
  to: Pick<ResponseContext, "id" | "created" | "model">,
): JsonObject => ({
  id: `cmpl-${to.id}`,
  object: "text_completion",
  created: to.created,
  model: to.model,
});

const choice = (text: string, finish: Json = null): JsonObject => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason: finish,
});

const formatFinishReason = (reason: FinishReason): string =>
  reason === "length" || reason === "context"
    ? "length"
    : reason === "filtered" || reason === "refusal"
      ? "content_filter"
      : "stop";

/** Encodes a non-streaming response. */
export const encodeResponse = (answer: ModelResponse, to: ResponseContext): JsonObject => ({
  ...responseFrame(to),
  choices: [
    choice(
      answer.blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
      formatFinishReason(answer.finish.reason),
    ),
  ],
  usage: usageTo(answer.usage),
});

/** Encodes a response as a stream of events. */
export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const frame = responseFrame(to);
  const includesUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
  const texts = new Set<number>();
  let usage: Usage = {};
  const put = (chunk: JsonObject): void =>
    write(`data: ${JSON.stringify({ ...frame, ...chunk })}\n\n`);
  return {
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "open":
          if (e.block.type === "text") texts.add(e.index);
          return undefined;
        case "delta":
          return texts.has(e.index) ? put({ choices: [choice(e.text)] }) : undefined;
        case "usage":
          usage = e.usage;
          return undefined;
        case "finish":
          put({ choices: [choice("", formatFinishReason(e.reason))] });
          if (includesUsage) put({ choices: [], usage: usageTo(usage) });
          return write("data: [DONE]\n\n");
      }
    },
    writeFault: (f) =>
      write(`data: ${JSON.stringify(encodeFault(f, to).body)}\n\ndata: [DONE]\n\n`),
  };
}
