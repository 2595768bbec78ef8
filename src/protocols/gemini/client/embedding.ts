// Vectors by the same API: one request that holds a request for each text, or one for one text alone. The answer counts nothing on
// most models.
import { fail, type Fault } from "../../../model/error.ts";
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
import { faultBody } from "../server/fault.ts";
import { embeddingTaskName } from "../embedding-tasks.ts";
import { validateEmbeddingsFor, EMBEDDING_EXT } from "../embedding-requests.ts";
import { nameOf } from "./request.ts";

/** One name that it does not know, and this API refuses the request: what no codec knows stays behind. */
export const knowsField = (): boolean => true;

export const encodeRequests = (r: EmbeddingRequest, of: CallContext): Body => ({
  requests: each(r, of).map((one) => ({ model: nameOf(of.model), ...one })),
});

export function encodeRequest(r: EmbeddingRequest, of: CallContext): Body {
  const [one, ...others] = each(r, of);
  if (!one || others.length > 0)
    fail("unsupported", `${of.model} is asked for one text at a time here.`, { param: "input" });
  return one!;
}

function each(r: EmbeddingRequest, of: CallContext): readonly JsonObject[] {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} makes vectors of floats.`, { param: "output_dtype" });
  if (r.truncate !== undefined) of.reportLoss("truncate", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  const taskType = embeddingTaskName(r, of);
  // What only this wire says of a text.
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

/** Of an answer to several. */
export const parseEmbeddingList: Read = ({ embeddings }) =>
  Array.isArray(embeddings) ? asList(embeddings).map(valuesIn) : failNoEmbedding();

/** Of an answer to one. */
export const parseSingleEmbedding: Read = ({ embedding }) => [
  asObject(embedding) ? valuesIn(embedding) : failNoEmbedding(),
];

const failNoEmbedding = (): never =>
  fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });

export const createResponseDecoder =
  (read: Read) =>
  (body: Buffer, emit: (event: ModelEvent) => void): void => {
    const answer = answerIn(body);
    emitEmbeddings(emit, { vectors: read(answer), usage: counted(answer) });
  };

/** Passthrough mode: what came is looked at, and passes as it is. */
export const createPassthrough =
  (read: Read) =>
  (sink: PassthroughSink, to: ResponseContext): PassthroughStream => ({
    isBetweenEvents: true,
    push(body) {
      const answer = answerIn(body);
      // What was read is billed, though its vectors may be no answer.
      sink.reportUsage({ type: "usage", usage: counted(answer) });
      validateEmbeddingsFor(to.body, read(answer));
      sink.reportContent();
      sink.reportFinish("stop");
      sink.write(body);
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(faultBody(f))));
    },
  });

function answerIn(body: Buffer): JsonObject {
  const answer = parseObject(body.toString("utf8"));
  if (answer?.["error"]) throwParsedError(answer);
  return answer ?? failNoEmbedding();
}

function counted({ usageMetadata }: JsonObject): Usage {
  const input = asCount(asObject(usageMetadata)?.["promptTokenCount"]);
  return input === undefined ? {} : { input };
}
