// The half of the embeddings protocol that faces providers.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { EmbeddingRequest, Embedding } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, Json, JsonObject, Opt } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type {
  CallContext,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../plugin/protocol.ts";
import { parseResponseObject } from "../failure/parse-error.ts";
import { asObject, omitUndefined, asNumber, asText } from "../json-values.ts";
import { createResponsePassthrough, writeJson, openaiFaultBody } from "../passthrough.ts";
import { replaceModelName } from "../sse/index.ts";
import { reportForeignFields, parseTask, taskNameFor } from "./embedding-requests.ts";
import {
  parseEmbedding,
  validateEmbeddings,
  isInRequestedFormat,
  readExpectation,
  encodeEmbedding,
} from "./embedding-values.ts";
import {
  ID,
  type EmbeddingDialect,
  ENCODING_FORMAT,
  TASK_FIELDS,
  usageOf,
  usageTo,
  inputsIn,
} from "./spec.ts";

/**
 * Encodes a request in OpenAI's form, with fields that other backends added. `prepare` adapts it to
 * the backend's dialect, in both modes.
 */
export function encodeRequest(
  r: EmbeddingRequest,
  of: Pick<CallContext, "model" | "reportLoss">,
): Body {
  reportForeignFields(r, of);
  const own = asObject(r.ext[ID]);
  const [first] = r.inputs;
  return omitUndefined({
    model: of.model,
    input: r.inputs.length === 1 && first !== undefined ? first : r.inputs,
    dimensions: r.dimensions,
    output_dtype: r.dtype,
    truncate: r.truncate?.toUpperCase(),
    user: r.user,
    // If the client used this protocol, its own task name is sent.
    ...own,
    ...(r.task !== undefined && !saysTask(own) && { input_type: r.task }),
  });
}

const saysTask = (own: ReturnType<typeof asObject>): boolean =>
  own !== undefined && Object.keys(own).some((field) => field !== "encoding_format");

/**
 * Adapts an outgoing request to the backend's dialect, in both modes. Fields are renamed, and
 * fields that the backend cannot read are dropped.
 */
export function prepare(out: Outgoing, of: CallContext, dialect: EmbeddingDialect): void {
  if (
    dialect.tokenIds === false &&
    inputsIn(out.get("input")).some((one) => typeof one !== "string")
  )
    fail("unsupported", `${of.model} supports text, not token IDs.`, {
      param: "input",
      code: "unsupported_input",
    });
  adaptEncodingFormat(out, dialect);
  adaptDimensions(out, of, dialect);
  adaptTask(out, of, dialect);
  adaptTruncation(out, of, dialect);
}

/**
 * Removes an encoding format that this backend rejects. The client still receives the requested
 * format, because the gateway converts the vectors.
 */
function adaptEncodingFormat(out: Outgoing, { encodingFormats }: EmbeddingDialect): void {
  const requested = out.get(ENCODING_FORMAT);
  if (
    encodingFormats &&
    requested !== undefined &&
    !encodingFormats.some((one) => one === requested)
  )
    out.remove(ENCODING_FORMAT);
}

function adaptDimensions(
  out: Outgoing,
  of: CallContext,
  { dimensions: own }: EmbeddingDialect,
): void {
  const width = asNumber(out.get("dimensions")) ?? asNumber(out.get("output_dimension"));
  if (width === undefined) return;
  if (own === false)
    fail("unsupported", `${of.model} supports only one embedding size.`, {
      param: "dimensions",
      code: "unsupported_dimensions",
    });
  const [name, other] =
    own === "output_dimension"
      ? (["output_dimension", "dimensions"] as const)
      : (["dimensions", "output_dimension"] as const);
  if (out.get(name) !== width) out.set(name, width);
  if (out.get(other) !== undefined) out.remove(other);
}

/**
 * Sets the task in the backend's own field and name, whichever vendor's field and name the client
 * used.
 */
function adaptTask(out: Outgoing, of: CallContext, { task: own }: EmbeddingDialect): void {
  if (own === undefined) return;
  for (const field of TASK_FIELDS) {
    const value = out.get(field);
    if (value === undefined) continue;
    const known = parseTask(value);
    if (own === false) {
      out.remove(field);
      if (value !== null) of.reportLoss(field, "dropped");
    } else if (known !== undefined) {
      const word = taskNameFor(known, own.words, of, field);
      if (field !== own.field || word === undefined) out.remove(field);
      if (word !== undefined && word !== out.get(own.field)) out.set(own.field, word);
    } else if (field !== own.field) {
      out.remove(field);
      if (value !== null) of.reportLoss(field, "dropped");
    }
  }
}

function adaptTruncation(out: Outgoing, of: CallContext, { truncate }: EmbeddingDialect): void {
  const value = out.get("truncate");
  if (truncate === undefined || value === undefined) return;
  out.remove("truncate");
  const word = asText(value)?.toLowerCase();
  if (word === "start") of.reportLoss("truncate", "approximated", "truncated_at_the_end");
  if (typeof value === "boolean" || word !== undefined)
    out.set(truncate, value === true || (word !== undefined && word !== "none"));
}

/** Decodes a response into events: one item per vector. */
type Emit = (event: ModelEvent) => void;

export function decodeResponse(body: Buffer, emit: Emit): void {
  const answer = parseResponseObject(body.toString("utf8"), "data");
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

/**
 * Returns the vectors in the order of their index, or of their position if there is no index. An
 * invalid vector leaves a gap.
 */
function parseEmbeddings({ data }: JsonObject): readonly (Embedding | undefined)[] {
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

/**
 * Forwards responses in passthrough mode if they have the form that the client requested. Backends
 * without `encoding_format` always return numbers, and some omit a count that clients rely on. Such
 * a response is re-encoded, and its other fields are kept.
 */
export function createPassthrough(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return createResponsePassthrough(
    sink,
    (body) => {
      const answer = parseResponseObject(body.toString("utf8"), "data");
      const usageReport = asObject(answer["usage"]);
      const seen = usageOf(usageReport);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      // The input is billed even if the vectors are invalid, so usage is reported before
      // validation.
      sink.reportUsage({ type: "usage", usage: seen });
      const wish = readExpectation(to.body);
      const vectors = validateEmbeddings(parseEmbeddings(answer), wish);
      const data = vectors.every((vector) => isInRequestedFormat(vector, wish))
        ? answer["data"]
        : vectors.map((vector, index) => ({
            object: "embedding",
            index,
            embedding: encodeEmbedding(vector, wish) as Json,
          }));
      sink.reportContent();
      const usage = { ...seen, ...sink.reportFinish("stop") };
      const counted = asNumber(usageReport?.["prompt_tokens"]) !== undefined;
      if (counted && data === answer["data"])
        return replaceModelName(body, to.model, (b) => sink.write(b));
      const anew: JsonObject = {
        ...answer,
        object: "list",
        data,
        model: to.model,
        usage: counted ? usageReport : { ...usageReport, ...usageTo(usage) },
      };
      return writeJson(sink, anew);
    },
    openaiFaultBody(to),
  );
}
