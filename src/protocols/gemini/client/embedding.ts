// Vectors by the same API: one request that holds a request for each text, or one for one text alone. The answer counts nothing on
// most models.
import { fail, type Fault } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { EmbeddingRequest, Vector } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Body, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, CallContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { emitVectors, textsOnly, vectorOf } from "../../embeddings/index.ts";
import { throwFailure } from "../../failure/failure.ts";
import { count, list, object, parsed, present } from "../../json.ts";
import { faultBody } from "../server/fault.ts";
import { taskWord } from "../tasks.ts";
import { owed, VECTORS } from "../vectors.ts";
import { nameOf } from "./request.ts";

/** One name that it does not know, and this API refuses the request: what no codec knows stays behind. */
export const knows = (): boolean => true;

export const requests = (r: EmbeddingRequest, of: CallContext): Body => ({
  requests: each(r, of).map((one) => ({ model: nameOf(of.model), ...one })),
});

export function request(r: EmbeddingRequest, of: CallContext): Body {
  const [one, ...others] = each(r, of);
  if (!one || others.length > 0)
    fail("unsupported", `${of.model} is asked for one text at a time here.`, { param: "input" });
  return one!;
}

function each(r: EmbeddingRequest, of: CallContext): readonly JsonObject[] {
  if (r.dtype !== undefined && r.dtype !== "float")
    fail("unsupported", `${of.model} makes vectors of floats.`, { param: "output_dtype" });
  if (r.truncate !== undefined) of.lose("truncate", "dropped");
  if (r.user !== undefined) of.lose("user", "dropped");
  const taskType = taskWord(r, of);
  // What only this wire says of a text.
  const own = list(r.ext[VECTORS]);
  return textsOnly(r, of).map((text, i) =>
    present({
      content: { parts: [{ text }] },
      taskType,
      outputDimensionality: r.dimensions,
      ...object(own[i]),
    }),
  );
}

type Read = (answer: JsonObject) => readonly (Vector | undefined)[];
const valuesIn = (said: unknown): Vector | undefined => vectorOf(object(said)?.["values"]);

/** Of an answer to several. */
export const several: Read = ({ embeddings }) =>
  Array.isArray(embeddings) ? list(embeddings).map(valuesIn) : none();

/** Of an answer to one. */
export const single: Read = ({ embedding }) => [object(embedding) ? valuesIn(embedding) : none()];

const none = (): never =>
  fail("upstream", "The provider answered without vectors.", { code: "bad_answer" });

export const whole =
  (read: Read) =>
  (body: Buffer, emit: (event: ModelEvent) => void): void => {
    const answer = answerIn(body);
    emitVectors(emit, { vectors: read(answer), usage: counted(answer) });
  };

/** The verbatim lane: what came is looked at, and passes as it is. */
export const relay =
  (read: Read) =>
  (sink: RelaySink, to: AnswerContext): Relay => ({
    between: true,
    push(body) {
      const answer = answerIn(body);
      // What was read is billed, though its vectors may be no answer.
      sink.usage({ type: "usage", usage: counted(answer) });
      owed(to.body, read(answer));
      sink.content();
      sink.finish("stop");
      sink.bytes(body);
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(faultBody(f))));
    },
  });

function answerIn(body: Buffer): JsonObject {
  const answer = parsed(body.toString("utf8"));
  if (answer?.["error"]) throwFailure(answer);
  return answer ?? none();
}

function counted({ usageMetadata }: JsonObject): Usage {
  const input = count(object(usageMetadata)?.["promptTokenCount"]);
  return input === undefined ? {} : { input };
}
