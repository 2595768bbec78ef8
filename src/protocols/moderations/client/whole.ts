// A host's verdicts, as events: one item each.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import { throwFailure } from "../../failure/failure.ts";
import { isObject, list, number, object, parsed, present, text } from "../../json.ts";

export function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, verdicts } = verdictsIn(body);
  emit(present({ type: "start" as const, id: text(answer["id"]) }));
  verdicts.forEach((said, index) => emit({ type: "item", index, item: { said } }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

export function verdictsIn(body: Buffer) {
  const answer = parsed(body.toString("utf8"));
  const said = answer?.["results"];
  if (answer?.["error"] && !said) throwFailure(answer);
  if (!answer || !Array.isArray(said) || said.length === 0 || !list(said).every(isObject))
    return fail("upstream", "The provider answered without a verdict.", { code: "bad_answer" });
  return { answer, verdicts: said as unknown as readonly JsonObject[] };
}

/** Nothing where nothing was counted, which is the rule. */
export function usageOf({ usage }: JsonObject): Usage {
  const input = number(object(usage)?.["prompt_tokens"]);
  return input === undefined ? {} : { input };
}
