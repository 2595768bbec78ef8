import type { CallContext, Outgoing } from "../../../plugin/index.ts";
import { reasoningSupportFor, type ResponsesDialect } from "../dialect.ts";
import { isSealed, unseal } from "../../proof-envelope.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import { failResponse, withoutReferences } from "../stored-references.ts";
import { ENCRYPTED, mayReason } from "./thinking.ts";
import { asList } from "../../json-values.ts";
import { ORIGIN } from "../constants.ts";

/**
 * Applies this protocol's last changes to a request, in both modes and for all frontends. The
 * provider stores nothing unless the client requested it, and nothing is looked up by ID alone.
 */
export function prepare(out: Outgoing, of: CallContext, dialect: ResponsesDialect): void {
  const relayed = of.stateMode === "relay";
  if (of.actionType === "relay") {
    if (!relayed) failResponse(of.params["id"] ?? "");
    return;
  }
  rejectBlockedReferences(out, of.stateMode);
  // If the operator relays state, the input is left to the provider that stores it. Envelopes are
  // opened in both cases, because they belong to the gateway.
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
  if (of.actionType === "generate") {
    if (dialect.store === false) out.remove("store");
    else if (!relayed && out.get("store") == null) {
      out.set("store", false);
      const include = asList(out.get("include"));
      if (
        mayReason(reasoningSupportFor(dialect, of.info, of.model), out.get("reasoning") != null) &&
        !include.includes(ENCRYPTED)
      )
        out.set("include", [...include, ENCRYPTED]);
    }
  }
  for (const field of dialect.dropFields ?? [])
    if (out.get(field) !== undefined) {
      out.remove(field);
      of.reportLoss(field, "dropped");
    }
}
