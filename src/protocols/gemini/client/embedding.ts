// Client half of the embedding methods. A body contains one request per text, or a single request.
// Most models report no usage.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Body, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  CallContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { emitEmbeddings, requireTextInputs, parseEmbedding } from "../../embeddings/index.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asCount, asList, asObject, parseObject, omitUndefined } from "../../json-values.ts";
import { createResponsePassthrough } from "../../passthrough.ts";
import { embeddingTaskName, validateEmbeddingsFor, EMBEDDING_EXT } from "../embedding-requests.ts";
import { faultBody } from "../server/fault.ts";
import { nameOf } from "./request.ts";

/**
 * Always true, so that unknown fields are not sent. This API rejects a request with one unknown
 * field.
 */
export const knowsField = (): boolean => true;

export const encodeRequests = (r: EmbeddingRequest, of: CallContext): Body => ({
  requests: each(r, of).map((one) => ({ model: nameOf(of.model), ...one })),
});

export function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
  const [one, ...others] = each(r, of);
  if (!one || others.length > 0)
    fail("unsupported", `${of.model} supports only one text per request here.`, { param: "input" });
  return one!;
}

function each(r: EmbeddingRequest, of: CallContext): readonly JsonObject[] {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} supports only float embeddings.`, { param: "output_dtype" });
  if (r.truncate !== undefined) of.reportLoss("truncate", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  const taskType = embeddingTaskName(r, of);
  // Fields of each text that only this protocol has.
  const own = asList(r.ext[EMBEDDING_EXT]);
  return requireTextInputs(r, of).map((text, i) =>
    omitUndefined({
      content: { parts: [{ text }] },
      taskType,
      outputDimensionality: r.dimensions,
      ...asObject(own[i]),
    }),
  );
}

type Read = (answer: JsonObject) => readonly (Embedding | undefined)[];
const valuesIn = (value: unknown): Embedding | undefined =>
  parseEmbedding(asObject(value)?.["values"]);

/** Reads the vectors of a `batchEmbedContents` response. */
export const parseEmbeddingList: Read = ({ embeddings }) =>
  Array.isArray(embeddings) ? asList(embeddings).map(valuesIn) : failNoEmbedding();

/** Reads the vector of an `embedContent` response. */
export const parseSingleEmbedding: Read = ({ embedding }) => [
  asObject(embedding) ? valuesIn(embedding) : failNoEmbedding(),
];

const failNoEmbedding = (): never =>
  fail("upstream", "The provider returned no embeddings.", { code: "bad_answer" });

export const createResponseDecoder =
  (read: Read) =>
  (body: Buffer, emit: (event: ModelEvent) => void): void => {
    const answer = answerIn(body);
    emitEmbeddings(emit, { vectors: read(answer), usage: counted(answer) });
  };

/** Forwards responses in passthrough mode. The response is validated and forwarded unchanged. */
export const createPassthrough =
  (read: Read) =>
  (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
    createResponsePassthrough(
      sink,
      (body) => {
        const answer = answerIn(body);
        // The input is billed even if the vectors are invalid, so usage is reported before
        // validation.
        sink.reportUsage({ type: "usage", usage: counted(answer) });
        validateEmbeddingsFor(to.body, read(answer));
        sink.reportContent();
        sink.reportFinish("stop");
        sink.write(body);
      },
      faultBody,
    );

function answerIn(body: Buffer): JsonObject {
  const answer = parseObject(body.toString("utf8"));
  if (answer?.["error"]) throwParsedError(answer);
  return answer ?? failNoEmbedding();
}

function counted({ usageMetadata }: JsonObject): Usage {
  const input = asCount(asObject(usageMetadata)?.["promptTokenCount"]);
  return input === undefined ? {} : { input };
}
