import { fail } from "../../../model/error.ts";
import type { CallContext } from "../../../plugin/index.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import { asList, asNumber, asObject, asText } from "../../json-values.ts";
import { isSealed, unseal } from "../../proof-envelope.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import { ENCRYPTED, mayReason } from "./thinking.ts";
import { ORIGIN, itemTypeOf, reasoningSupportFor, type ResponsesDialect } from "../constants.ts";
import { failResponse, withoutReferences, withoutId } from "../stored-references.ts";

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
  // If the operator relays state, references to stored items stay in the input. Envelopes are
  // opened in both cases, because the gateway created them.
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
  dropSocketBeta(out);
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

/** The handshake of a WebSocket client announces a beta that requests over HTTP do not have. */
function dropSocketBeta(out: Outgoing): void {
  const beta = out.headers["openai-beta"];
  if (!beta?.includes("responses_websockets=")) return;
  const kept = beta
    .split(",")
    .map((name) => name.trim())
    .filter((name) => !name.startsWith("responses_websockets="));
  out.setHeader("openai-beta", kept.length > 0 ? kept.join(",") : undefined);
}

/** Lowers the output limit to the amount that the caller can pay for. */
export function capOutput(out: Outgoing, tokens: number): void {
  const requested = asNumber(out.get("max_output_tokens"));
  if (requested === undefined || requested > tokens) out.set("max_output_tokens", tokens);
}

// Encrypted reasoning can be read only by the provider account that created it.

/** Error codes of a provider that received encrypted reasoning of another account. */
const REJECTION_CODES = ["invalid_encrypted_content"];

/**
 * Removes encrypted reasoning. The conversation can continue without it, because the model reasons
 * again. A compacted conversation cannot be removed, because it is the only remaining history, so
 * the request is rejected.
 */
function stripEncryptedReasoning(out: Outgoing, of: CallContext): void {
  const kept = asList(out.get("input")).filter((raw) => {
    const item = asObject(raw);
    if (!item || asText(item["encrypted_content"]) === undefined) return true;
    if (itemTypeOf(item) === "reasoning") return false;
    return fail(
      "unsupported",
      "A compacted conversation can be read only by the provider account that created it.",
      {
        code: "account_bound",
        param: "input",
      },
    );
  });
  of.reportLoss("input", "dropped", "account_bound");
  out.set("input", kept.map(withoutId));
}

export const accountBound = { errorCodes: REJECTION_CODES, strip: stripEncryptedReasoning };
