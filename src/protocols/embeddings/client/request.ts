// Encodes a request as a body of this protocol.
import type { EmbeddingRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { reportForeignFields } from "../foreign-fields.ts";
import { ID } from "../constants.ts";

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
