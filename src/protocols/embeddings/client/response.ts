// Decodes a response into events: one item per vector.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Embedding } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asNumber, asObject, parseObject, omitUndefined, asText } from "../../json-values.ts";
import { usageOf } from "../usage.ts";
import { parseEmbedding } from "../embedding-values.ts";

type Emit = (event: ModelEvent) => void;

export function decodeResponse(body: Buffer, emit: Emit): void {
  const answer = parseResponseObject(body);
  emitEmbeddings(emit, {
    id: asText(answer["id"]),
    vectors: parseEmbeddings(answer),
    usage: usageOf(asObject(answer["usage"])),
  });
}

/**
 * Emits a response with vectors, in any protocol. A missing vector leaves a gap, and the server
 * half rejects a response with gaps.
 */
export function emitEmbeddings(
  emit: Emit,
  of: { id?: Opt<string>; vectors: readonly (Embedding | undefined)[]; usage: Usage },
): void {
  emit(omitUndefined({ type: "start" as const, id: of.id }));
  of.vectors.forEach((item, index) => {
    if (item) emit({ type: "item", index, item });
  });
  emit({ type: "usage", usage: of.usage });
  emit({ type: "finish", reason: "stop" });
}

/** Parses a response. If it is an error with status 200, the error is thrown. */
export function parseResponseObject(body: Buffer): JsonObject {
  const answer = parseObject(body.toString("utf8"));
  if (!answer)
    return fail("upstream", "The provider's response is not a JSON object.", {
      code: "bad_answer",
    });
  if (answer["error"] !== undefined && answer["error"] !== null && !answer["data"])
    throwParsedError(answer);
  return answer;
}

/**
 * Returns the vectors in the order of their index, or of their position if there is no index. An
 * invalid vector leaves a gap.
 */
export function parseEmbeddings({ data }: JsonObject): readonly (Embedding | undefined)[] {
  if (!Array.isArray(data))
    return fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });
  const found = Array.from<Embedding | undefined>({ length: data.length });
  (data as readonly Json[]).forEach((row, place) => {
    const item = asObject(row);
    const index = asNumber(item?.["index"]) ?? place;
    if (!Number.isInteger(index) || index < 0 || index >= data.length || found[index])
      fail("upstream", "The provider returned embeddings in the wrong order.", {
        code: "bad_answer",
      });
    found[index] = parseEmbedding(item?.["embedding"]);
  });
  return found;
}
