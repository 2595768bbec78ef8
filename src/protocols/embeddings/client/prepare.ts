// Adapts an outgoing request to the backend's dialect, in both modes. Fields are renamed, and
// fields that the backend cannot read are dropped.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asNumber, asText } from "../../json-values.ts";
import type { EmbeddingDialect } from "../dialect.ts";
import { parseTask, taskNameFor } from "../embedding-tasks.ts";
import { inputsIn } from "../embedding-values.ts";
import { ENCODING_FORMAT, TASK_FIELDS } from "../constants.ts";

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
  for (const field of dialect.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null) of.reportLoss(field, "dropped");
  }
}

/**
 * Removes an encoding format that this backend rejects. The client still receives the requested
 * format, because the gateway converts the vectors.
 */
function adaptEncodingFormat(out: Outgoing, { encodingFormats }: EmbeddingDialect): void {
  const asked = out.get(ENCODING_FORMAT);
  if (encodingFormats && asked !== undefined && !encodingFormats.some((one) => one === asked))
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
