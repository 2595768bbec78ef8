// Decodes a backend's ranking into events, one item per document.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, parseObject, omitUndefined, asText } from "../../json-values.ts";
import { parseRankedDocument } from "../ranking.ts";
import { usageOf } from "../usage.ts";

export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, rows } = parseRankings(body);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  rows.forEach((item, index) => emit({ type: "item", index, item }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

/** Parses a ranking. Backends call the list `results` or `data`. */
export function parseRankings(body: Buffer) {
  const answer = parseObject(body.toString("utf8"));
  const results = answer?.["results"] ?? answer?.["data"];
  if (answer?.["error"] && !results) throwParsedError(answer as JsonObject);
  if (!answer || !Array.isArray(results))
    return fail("upstream", "The provider returned no ranking.", { code: "bad_answer" });
  return { answer, rows: asList(results).map(parseRankedDocument) };
}
