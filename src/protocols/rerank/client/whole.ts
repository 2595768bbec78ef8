// A host's ranking, as events: one item a document.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, parsed, present, text } from "../../json.ts";
import { rankingOf } from "../ranking.ts";
import { usageOf } from "../usage.ts";

export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, rows } = rankingsIn(body);
  emit(present({ type: "start" as const, id: text(answer["id"]) }));
  rows.forEach((item, index) => emit({ type: "item", index, item }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

/** Under either of the two names that are in use. */
export function rankingsIn(body: Buffer) {
  const answer = parsed(body.toString("utf8"));
  const said = answer?.["results"] ?? answer?.["data"];
  if (answer?.["error"] && !said) throwFailure(answer as JsonObject);
  if (!answer || !Array.isArray(said))
    return fail("upstream", "The provider answered without a ranking.", { code: "bad_answer" });
  return { answer, rows: list(said).map(rankingOf) };
}
