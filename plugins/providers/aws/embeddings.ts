// Embeddings through InvokeModel. Titan embeds one text per call, so a request needs one call per
// text. Cohere has its own API format, and its token count is in a header.
import {
  fail,
  type Call,
  type EmbeddingRequest,
  type ModelEvent,
  type Protocol,
  type Embedding,
} from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { requireTextInputs, parseEmbedding } from "tollgate/protocols/embeddings";
import { parseAwsError } from "./errors.ts";
import { invokeModel, modelPath } from "./invoke-model.ts";
import { countOf, some } from "./json.ts";

const CONCURRENCY = 8;

interface Embedded {
  readonly vector: Embedding;
  readonly tokens: number | undefined;
}

/**
 * Embeds texts with Titan. If one text fails, the request fails, because missing embeddings would
 * shift the indexes of the others. Completed texts are billed.
 */
export async function* embedWithTitan(r: EmbeddingRequest, call: Call): AsyncGenerator<ModelEvent> {
  const texts = requireTextInputs(r, call);
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${call.model} supports only float embeddings.`, { param: "output_dtype" });
  if (r.user !== undefined) call.reportLoss("user", "dropped");
  if (r.task !== undefined) call.reportLoss("input_type", "dropped", "task_unknown");
  if (r.truncate !== undefined) call.reportLoss("truncate", "dropped");
  for (const field in r.rest) call.reportLoss(field, "dropped");
  const over = new AbortController();
  const signal = AbortSignal.any([call.signal, over.signal]);
  const done: (Embedded | undefined)[] = texts.map(() => undefined);
  let next = 0;
  let problem: { error: unknown } | undefined;
  const work = async () => {
    while (next < texts.length && !problem) {
      const at = next++;
      try {
        done[at] = await embedText(texts[at]!, r, call, signal);
      } catch (error) {
        problem ??= { error };
        over.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, texts.length) }, work));
  const made = done.filter((each) => each !== undefined);
  if (made.length > 0) yield { type: "start" };
  if (problem && made.length > 0) yield { type: "usage", usage: totalUsage(made) };
  if (problem) throw problem.error;
  for (const [index, each] of made.entries()) yield { type: "item", index, item: each.vector };
  yield { type: "usage", usage: totalUsage(made) };
  yield { type: "finish", reason: "stop" };
}

/** Returns the total usage, or no usage if a count is missing. */
function totalUsage(made: readonly Embedded[]): { input?: number } {
  let input = 0;
  for (const { tokens } of made) {
    if (tokens === undefined) return {};
    input += tokens;
  }
  return { input };
}

async function embedText(
  inputText: string,
  { dimensions }: EmbeddingRequest,
  call: Call,
  signal: AbortSignal,
): Promise<Embedded> {
  const response = await invokeModel(call, { inputText, ...some({ dimensions }) }, signal);
  const vector =
    parseEmbedding(response["embedding"]) ??
    fail("upstream", "The provider's response has no embedding.", { code: "bad_answer" });
  return { vector, tokens: countOf(response["inputTextTokenCount"]) };
}

/** Cohere's API format on Bedrock. */
export function bedrockCohere(): Protocol<"embedding"> {
  // Requests in this format are only sent to Bedrock, so the protocol has no server half.
  const { server: _, ...own } = cohereEmbeddings();
  const client = own.client!;
  return {
    ...own,
    client: {
      ...client,
      paths: { generate: (of) => modelPath(of.model, "invoke") },
      prepare: (out) => out.remove("model"),
      decodeResponse(body, emit, of, headers) {
        const input = countOf(Number(headers["x-amzn-bedrock-input-token-count"] ?? Number.NaN));
        client.decodeResponse(
          body,
          (event) =>
            emit(
              event.type === "usage" && event.usage.input === undefined && input !== undefined
                ? { ...event, usage: { ...event.usage, input } }
                : event,
            ),
          of,
          headers,
        );
      },
      decodeFault: parseAwsError,
    },
  };
}
