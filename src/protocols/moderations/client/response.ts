// Decodes a backend's moderation results into events, one item per result.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import {
  isObject,
  asList,
  asNumber,
  asObject,
  parseObject,
  omitUndefined,
  asText,
} from "../../json-values.ts";

export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, verdicts } = parseResults(body);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  verdicts.forEach((said, index) => emit({ type: "item", index, item: { raw: said } }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

export function parseResults(body: Buffer) {
  const answer = parseObject(body.toString("utf8"));
  const results = answer?.["results"];
  if (answer?.["error"] && !results) throwParsedError(answer);
  if (
    !answer ||
    !Array.isArray(results) ||
    results.length === 0 ||
    !asList(results).every(isObject)
  )
    return fail("upstream", "The provider returned no moderation result.", { code: "bad_answer" });
  return { answer, verdicts: results as unknown as readonly JsonObject[] };
}

/** Returns the usage. It is usually empty, because most backends report no counts. */
export function usageOf({ usage }: JsonObject): Usage {
  const input = asNumber(asObject(usage)?.["prompt_tokens"]);
  return input === undefined ? {} : { input };
}
