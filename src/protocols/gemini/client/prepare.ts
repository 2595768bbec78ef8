// The last look of this protocol at a request before it leaves.
import type { Json } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import { asObject, asObjects } from "../../json-values.ts";
import { toSnakeCase } from "../../tool-names.ts";
import {
  normalizeField,
  TOP_LEVEL_FIELDS,
  EMBEDDING_TOP_LEVEL_FIELDS,
} from "../normalize-field-names.ts";
import { ADDRESS_FIELDS, failMalformed } from "../constants.ts";
import { nameOf } from "./request.ts";

export function prepare(out: Outgoing, of: CallContext): void {
  for (const field of ADDRESS_FIELDS) if (out.get(field) !== undefined) out.remove(field);
  for (const field of TOP_LEVEL_FIELDS) spell(out, field);
  const counted = asObject(out.get("generateContentRequest"));
  // The model stands there once more, and may not be another one.
  if (counted) out.set("generateContentRequest", { ...counted, model: nameOf(of.model) });
  // What an account keeps is reached with its key, and all clients here share ours.
  rejectBlockedReferences(out, of.stateMode, { code: "state_unsupported" });
}

/** The same of a request for vectors: each of several names the model once more. */
export function prepareVectors(out: Outgoing, of: CallContext): void {
  if (out.get("model") !== undefined) out.remove("model");
  for (const field of EMBEDDING_TOP_LEVEL_FIELDS) spell(out, field);
  const requests = out.get("requests");
  if (requests !== undefined)
    out.set(
      "requests",
      asObjects(requests).map((one) => ({ ...one, model: nameOf(of.model) })),
    );
  rejectBlockedReferences(out, of.stateMode, { code: "state_unsupported" });
}

/** Under one name, so that what bounds an answer finds it. */
function spell(out: Outgoing, field: string): void {
  const other = toSnakeCase(field);
  const first = out.get(field);
  const second = other === field ? undefined : out.get(other);
  if (first !== undefined && second !== undefined)
    failMalformed(field, `stands there twice, as ${field} and as ${other}`);
  const value = first ?? second;
  if (value === undefined) return;
  const spelt = normalizeField(field, value as Json);
  if (second !== undefined) out.remove(other);
  if (spelt !== first) out.set(field, spelt);
}
