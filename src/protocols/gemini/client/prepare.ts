// The last look of this protocol at a request before it leaves.
import type { Json } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { refuseKept } from "../../look/index.ts";
import { object, objects } from "../../json.ts";
import { snake } from "../../names.ts";
import { fieldSpelt, TOP, TOP_OF_VECTORS } from "../one-spelling.ts";
import { BESIDE, malformed } from "../words.ts";
import { nameOf } from "./request.ts";

export function prepare(out: Outgoing, of: CallContext): void {
  for (const field of BESIDE) if (out.get(field) !== undefined) out.drop(field);
  for (const field of TOP) spell(out, field);
  const counted = object(out.get("generateContentRequest"));
  // The model stands there once more, and may not be another one.
  if (counted) out.set("generateContentRequest", { ...counted, model: nameOf(of.model) });
  // What an account keeps is reached with its key, and all clients here share ours.
  refuseKept(out, of.state, { code: "state_unsupported" });
}

/** The same of a request for vectors: each of several names the model once more. */
export function prepareVectors(out: Outgoing, of: CallContext): void {
  if (out.get("model") !== undefined) out.drop("model");
  for (const field of TOP_OF_VECTORS) spell(out, field);
  const requests = out.get("requests");
  if (requests !== undefined)
    out.set(
      "requests",
      objects(requests).map((one) => ({ ...one, model: nameOf(of.model) })),
    );
  refuseKept(out, of.state, { code: "state_unsupported" });
}

/** Under one name, so that what bounds an answer finds it. */
function spell(out: Outgoing, field: string): void {
  const other = snake(field);
  const first = out.get(field);
  const second = other === field ? undefined : out.get(other);
  if (first !== undefined && second !== undefined)
    malformed(field, `stands there twice, as ${field} and as ${other}`);
  const said = first ?? second;
  if (said === undefined) return;
  const spelt = fieldSpelt(field, said as Json);
  if (second !== undefined) out.drop(other);
  if (spelt !== first) out.set(field, spelt);
}
