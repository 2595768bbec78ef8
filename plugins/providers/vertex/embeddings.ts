// Embeddings through `predict`, for all text embedding models on Vertex. A request contains a list
// of texts, and the response contains a vector and a token count for each. Gemini's own embedding
// model accepts one text per request.
import {
  embeddingOperation,
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
import {
  emitEmbeddings,
  failNotStreamed,
  requireTextInputs,
  parseEmbedding,
} from "tollgate/protocols/embeddings";
import { gemini, embeddingTaskName } from "tollgate/protocols/gemini";
import { valueFields } from "tollgate/protocols/references";
import { bareName, modelUrl } from "./locations.ts";

export const vertexEmbeddings = (): Protocol<"embedding"> => ({
  id: "vertex-predict",
  operationSpec: embeddingOperation,
  zdrAllowedFields: [
    [
      "texts, what they are for, and how long a vector is",
      {
        instances: valueFields("content task_type title"),
        parameters: valueFields("autoTruncate outputDimensionality"),
      },
    ],
  ],
  client: {
    paths: { generate: (of) => modelUrl("google", of.model, "predict") },
    encodeRequest: request,
    knowsField: () => true,
    createDecoder: failNotStreamed,
    decodeResponse: whole,
    // Errors have the same format in the whole API.
    decodeFault: gemini().client!.decodeFault,
  },
});

function request(r: EmbeddingRequest, of: CallContext): Body {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} supports only float embeddings.`, { param: "output_dtype" });
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  const texts = requireTextInputs(r, of);
  if (texts.length > 1 && bareName(of.model).startsWith("gemini-"))
    fail("unsupported", `${of.model} accepts one text per request.`, { param: "input" });
  const task = embeddingTaskName(r, of);
  // The API either truncates the end of a long text or rejects the text.
  if (r.truncate === "start") of.reportLoss("truncate", "approximated");
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
  const predictions = within(parsed(body), "predictions");
  if (!Array.isArray(predictions))
    return fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });
  const made = predictions.map((one: unknown) => within(one, "embeddings"));
  const counts = made.map((one) => within(within(one, "statistics"), "token_count"));
  emitEmbeddings(emit, {
    vectors: made.map((one) => parseEmbedding(within(one, "values"))),
    usage: sumOf(counts),
  });
}

/** Returns the total usage, or no usage if a count is missing. */
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
