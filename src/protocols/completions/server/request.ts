// Decodes a request body into the common form.
import type { CompletionRequest } from "../../../model/request.ts";
import type { Body, Json, Opt } from "../../../model/values.ts";
import { asBoolean, asList, asNumber, omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { COMMON_FIELDS, ID, PROTOCOL_FIELDS } from "../constants.ts";

export function decodeRequest(body: Body): CompletionRequest {
  const own: Record<string, Json> = {};
  for (const field of PROTOCOL_FIELDS) {
    const value = body[field] as Opt<Json>;
    if (value !== undefined && value !== null) own[field] = value;
  }
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
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/**
 * Returns the prompts. A single text or a single list of token IDs becomes a list with one prompt.
 */
export function promptsIn(prompt: unknown): readonly (string | readonly number[])[] {
  if (typeof prompt === "string") return [prompt];
  const all = asList(prompt) as readonly (string | number | readonly number[])[];
  return typeof all[0] === "number" ? [all as readonly number[]] : (all as readonly string[]);
}

const stopsIn = (value: unknown): Opt<readonly string[]> =>
  typeof value === "string"
    ? [value]
    : Array.isArray(value)
      ? asList(value).flatMap((one) => asText(one) ?? [])
      : undefined;
