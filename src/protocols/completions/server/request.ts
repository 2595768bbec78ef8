// A client's words in the common vocabulary.
import type { CompletionRequest } from "../../../model/request.ts";
import type { Body, Json, Opt } from "../../../model/values.ts";
import { flag, list, number, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { COMMON, ID, OWN } from "../words.ts";

export function request(body: Body): CompletionRequest {
  const own: Record<string, Json> = {};
  for (const field of OWN) {
    const value = body[field] as Opt<Json>;
    if (value !== undefined && value !== null) own[field] = value;
  }
  return present({
    kind: "completion" as const,
    model: text(body["model"]) ?? "",
    stream: flag(body["stream"]) ?? false,
    prompts: promptsIn(body["prompt"]),
    suffix: text(body["suffix"]),
    maxTokens: number(body["max_tokens"]),
    stop: stopsIn(body["stop"]),
    sampling: present({
      temperature: number(body["temperature"]),
      topP: number(body["top_p"]),
      seed: number(body["seed"]),
      n: number(body["n"]),
      presence: number(body["presence_penalty"]),
      frequency: number(body["frequency_penalty"]),
    }),
    user: text(body["user"]),
    rest: unknownIn(
      body,
      (name) => body[name] === null || COMMON.includes(name) || OWN.includes(name),
    ),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** A text or the ids of one text stand for themselves. */
export function promptsIn(prompt: unknown): readonly (string | readonly number[])[] {
  if (typeof prompt === "string") return [prompt];
  const all = list(prompt) as readonly (string | number | readonly number[])[];
  return typeof all[0] === "number" ? [all as readonly number[]] : (all as readonly string[]);
}

const stopsIn = (said: unknown): Opt<readonly string[]> =>
  typeof said === "string"
    ? [said]
    : Array.isArray(said)
      ? list(said).flatMap((one) => text(one) ?? [])
      : undefined;
