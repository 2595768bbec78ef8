import type { CallContext, Outgoing } from "../../../plugin/index.ts";
import { reasonsFor, type ResponsesDialect } from "../dialect.ts";
import { isSealed, unseal } from "../../envelope.ts";
import { refuseKept } from "../../look/index.ts";
import { noResponse, withoutReferences } from "../state.ts";
import { ENCRYPTED, mayReason } from "./thinking.ts";
import { list } from "../../json.ts";
import { ORIGIN } from "../words.ts";

/** Both lanes, whatever the frontend: nothing is kept unless it was asked for, and nothing is found by an id alone. */
export function prepare(out: Outgoing, of: CallContext, dialect: ResponsesDialect): void {
  const relayed = of.state === "relay";
  if (of.op === "relay") {
    if (!relayed) noResponse(of.params["id"] ?? "");
    return;
  }
  refuseKept(out, of.state);
  // An operator that relays state leaves the input to the upstream that keeps it, but an envelope is ours either way.
  const input = withoutReferences(
    out.get("input"),
    (encrypted) => {
      if (!isSealed(encrypted)) return undefined;
      const proof = unseal(encrypted)?.proof;
      return proof?.origin === ORIGIN ? proof.data : null;
    },
    relayed,
  );
  if (input) out.set("input", input);
  if (of.op === "generate") {
    if (dialect.store === false) out.drop("store");
    else if (!relayed && out.get("store") == null) {
      out.set("store", false);
      const include = list(out.get("include"));
      if (
        mayReason(reasonsFor(dialect, of.info, of.model), out.get("reasoning") != null) &&
        !include.includes(ENCRYPTED)
      )
        out.set("include", [...include, ENCRYPTED]);
    }
  }
  for (const field of dialect.drop ?? [])
    if (out.get(field) !== undefined) {
      out.drop(field);
      of.lose(field, "dropped");
    }
}
