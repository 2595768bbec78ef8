// Adapts an outgoing request of this protocol.
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { nameOf } from "./request.ts";
import { ADDRESS_FIELDS, failMalformed } from "../constants.ts";
import {
  normalizeField,
  TOP_LEVEL_FIELDS,
  EMBEDDING_TOP_LEVEL_FIELDS,
} from "../normalize-field-names.ts";
import { asObject, asObjects } from "../../json-values.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import { toSnakeCase } from "../../tool-calls.ts";

export function prepare(out: Outgoing, of: CallContext): void {
  for (const field of ADDRESS_FIELDS) if (out.get(field) !== undefined) out.remove(field);
  for (const field of TOP_LEVEL_FIELDS) spell(out, field);
  const counted = asObject(out.get("generateContentRequest"));
  // A count request names the model a second time, and both names must be equal.
  if (counted) out.set("generateContentRequest", { ...counted, model: nameOf(of.model) });
  // Stored data of an account can be read with its key, and all clients share the gateway's key.
  rejectBlockedReferences(out, of.stateMode, { code: "state_unsupported" });
}

/** Adapts an outgoing embedding request. Each request in a list repeats the model. */
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

/** Renames a field to its camel case name, so that the output limit is found under one name. */
function spell(out: Outgoing, field: string): void {
  const other = toSnakeCase(field);
  const first = out.get(field);
  const second = other === field ? undefined : out.get(other);
  if (first !== undefined && second !== undefined)
    failMalformed(field, `occurs twice, as ${field} and as ${other}`);
  const value = first ?? second;
  if (value === undefined) return;
  const spelt = normalizeField(field, value as Json);
  if (second !== undefined) out.remove(other);
  if (spelt !== first) out.set(field, spelt);
}

/** Limits the output tokens of an outgoing request. Reasoning counts toward the limit. */
export function capOutput(out: Outgoing, tokens: number): void {
  const config = asObject(out.get("generationConfig")) ?? ({} as JsonObject);
  const requested = config["maxOutputTokens"];
  if (typeof requested === "number" && requested <= tokens) return;
  const thinking = asObject(config["thinkingConfig"]);
  const budget = thinking?.["thinkingBudget"];
  // A thinking budget that exceeds the limit would leave no tokens for the response.
  const starved = typeof budget === "number" && budget >= tokens;
  out.set("generationConfig", {
    ...config,
    maxOutputTokens: tokens,
    ...(starved && { thinkingConfig: { ...thinking, thinkingBudget: Math.floor(tokens / 2) } }),
  });
}
