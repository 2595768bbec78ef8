// Vectors by `predict`, as Vertex has them for all its models that embed text: a list of texts in, a vector and its count of tokens
// for each. Gemini's own model takes one text a request.
import {
  embeddingWork,
  fail,
  type Body,
  type CallContext,
  type EmbeddingRequest,
  type Json,
  type JsonObject,
  type ModelEvent,
  type Opt,
  type Protocol,
} from "tollgate/plugin";
import { emitVectors, notStreamed, textsOnly, vectorOf } from "tollgate/protocols/embeddings";
import { gemini, taskWord } from "tollgate/protocols/gemini";
import { plain } from "tollgate/protocols/look";
import { bareName, modelAt } from "./places.ts";

export const vertexVectors = (): Protocol<"embedding"> => ({
  id: "vertex-predict",
  work: embeddingWork,
  reviewed: [
    [
      "texts, what they are for, and how long a vector is",
      {
        instances: plain("content task_type title"),
        parameters: plain("autoTruncate outputDimensionality"),
      },
    ],
  ],
  client: {
    paths: { generate: (of) => modelAt("google", of.model, "predict") },
    request,
    knows: () => true,
    stream: notStreamed,
    whole,
    // Errors are the same all over this API.
    fault: gemini().client!.fault,
  },
});

function request(r: EmbeddingRequest, of: CallContext): Body {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} makes vectors of floats.`, { param: "output_dtype" });
  if (r.user !== undefined) of.lose("user", "dropped");
  const texts = textsOnly(r, of);
  if (texts.length > 1 && bareName(of.model).startsWith("gemini-"))
    fail("unsupported", `${of.model} takes one text a request.`, { param: "input" });
  const task = taskWord(r, of);
  // What is too long loses its end here, or is refused.
  if (r.truncate === "start") of.lose("truncate", "approximated");
  const autoTruncate = r.truncate === undefined ? undefined : r.truncate !== "none";
  const parameters = some({ outputDimensionality: r.dimensions, autoTruncate });
  return {
    instances: texts.map((content) => some({ content, task_type: task })!),
    ...(parameters && { parameters }),
  };
}

const isObject = (v: unknown): v is JsonObject =>
  typeof v === "object" && v !== null && !Array.isArray(v);
const within = (v: unknown, name: string): unknown => (isObject(v) ? v[name] : undefined);

function some(fields: { readonly [name: string]: Opt<Json> }): JsonObject | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return kept.length > 0 ? (Object.fromEntries(kept) as JsonObject) : undefined;
}

function whole(body: Buffer, emit: (event: ModelEvent) => void): void {
  const said = within(parsed(body), "predictions");
  if (!Array.isArray(said))
    return fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });
  const made = said.map((one: unknown) => within(one, "embeddings"));
  const counts = made.map((one) => within(within(one, "statistics"), "token_count"));
  emitVectors(emit, {
    vectors: made.map((one) => vectorOf(within(one, "values"))),
    usage: sumOf(counts),
  });
}

/** Without the count of one there is no count of all. */
function sumOf(counts: readonly unknown[]): { input?: number } {
  let input = 0;
  for (const count of counts) {
    if (!Number.isSafeInteger(count) || (count as number) < 0) return {};
    input += count as number;
  }
  return { input };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
