// A host's answer, as events: one item a vector.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Vector } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import { throwFailure } from "../../failure/failure.ts";
import { number, object, parsed, present, text } from "../../json.ts";
import { usageOf } from "../usage.ts";
import { vectorOf } from "../vectors.ts";

type Emit = (event: ModelEvent) => void;

export function whole(body: Buffer, emit: Emit): void {
  const answer = answerIn(body);
  emitVectors(emit, {
    id: text(answer["id"]),
    vectors: vectorsIn(answer),
    usage: usageOf(object(answer["usage"])),
  });
}

/** An answer of vectors, on whichever wire. One that is missing leaves a hole, which no client's request is answered with. */
export function emitVectors(
  emit: Emit,
  of: { id?: Opt<string>; vectors: readonly (Vector | undefined)[]; usage: Usage },
): void {
  emit(present({ type: "start" as const, id: of.id }));
  of.vectors.forEach((item, index) => {
    if (item) emit({ type: "item", index, item });
  });
  emit({ type: "usage", usage: of.usage });
  emit({ type: "finish", reason: "stop" });
}

/** An error under a 200 is thrown as what it says. */
export function answerIn(body: Buffer): JsonObject {
  const answer = parsed(body.toString("utf8"));
  if (!answer)
    return fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" });
  if (answer["error"] !== undefined && answer["error"] !== null && !answer["data"])
    throwFailure(answer);
  return answer;
}

/** By their own index, where they say it. One that is missing leaves a hole. */
export function vectorsIn({ data }: JsonObject): readonly (Vector | undefined)[] {
  if (!Array.isArray(data))
    return fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });
  const found = Array.from<Vector | undefined>({ length: data.length });
  (data as readonly Json[]).forEach((row, place) => {
    const said = object(row);
    const index = number(said?.["index"]) ?? place;
    if (!Number.isInteger(index) || index < 0 || index >= data.length || found[index])
      fail("upstream", "The provider's vectors are out of order.", { code: "bad_answer" });
    found[index] = vectorOf(said?.["embedding"]);
  });
  return found;
}
