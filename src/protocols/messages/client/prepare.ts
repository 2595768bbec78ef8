// Applies this protocol's last changes to a request before it is sent, in both modes.
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { requestsReasoning } from "../../cost-analysis.ts";
import { isObject, asText } from "../../json-values.ts";
import { TOKEN_COUNT_FIELDS, ID, KNOWN_TOP_LEVEL_FIELDS } from "../constants.ts";
import type { MessagesSettings } from "../dialect.ts";
import { isSealed, unseal } from "../../proof-envelope.ts";
import { betasWithin, filterBetas, isNamed } from "./beta-pairs.ts";
import { rejectBlockedReferences } from "../../references/index.ts";

export function prepare(out: Outgoing, of: CallContext, settings: MessagesSettings): void {
  const messages = out.get("messages");
  rejectBlockedReferences(out, of.stateMode, { code: "state_unsupported", param: "field" });
  const opened = Array.isArray(messages)
    ? withoutSeals(messages as readonly Json[], settings)
    : null;
  if (opened) out.set("messages", opened);
  if (of.actionType === "count")
    for (const field of KNOWN_TOP_LEVEL_FIELDS)
      if (!TOKEN_COUNT_FIELDS.has(field) && out.get(field) !== undefined) out.remove(field);
  const dropped = settings.dropFields.filter((field) => out.get(field) !== undefined);
  for (const field of dropped) {
    out.remove(field);
    of.reportLoss(field, "dropped");
  }
  if (settings.signer !== ID) withoutAttribution(out);
  if (!settings.betas) {
    filterBetas(out, of, () => false);
    out.setHeader("anthropic-beta");
  } else if (dropped.length > 0) {
    const names = betasWithin(dropped);
    filterBetas(out, of, (beta) => !isNamed(beta, names));
  }
}

/**
 * Opens sealed proofs in the conversation, which may have changed models between turns. A proof is
 * sent only to the provider that made it, because others reject its signature. Returns null if
 * there are no sealed proofs, which is by far the most common case.
 */
function withoutSeals(messages: readonly Json[], settings: MessagesSettings): Json[] | null {
  let found = false;
  const opened = messages.flatMap((message): Json[] => {
    if (!isObject(message) || message["role"] !== "assistant") return [message];
    const { content } = message;
    if (!Array.isArray(content) || !content.some(carriesSeal)) return [message];
    found = true;
    const kept = (content as readonly Json[]).flatMap((block) =>
      carriesSeal(block) ? unsealBlock(block as JsonObject, settings) : [block],
    );
    return kept.length > 0 ? [{ ...message, content: kept }] : [];
  });
  return found ? opened : null;
}

const sealOf = (block: Json): string | undefined =>
  isObject(block)
    ? block["type"] === "thinking"
      ? asText(block["signature"])
      : block["type"] === "redacted_thinking"
        ? asText(block["data"])
        : undefined
    : undefined;

const carriesSeal = (block: Json): boolean => isSealed(sealOf(block) ?? "");

function unsealBlock(
  block: JsonObject,
  { signer, acceptsUnsignedThinking }: MessagesSettings,
): JsonObject[] {
  const sealed = unseal(sealOf(block)!);
  const proof = sealed?.proof;
  const thinking = sealed?.text ?? asText(block["thinking"]) ?? "";
  if (!sealed || sealed.precedingBlock !== undefined) return [];
  if (proof?.origin === signer)
    return proof.kind === "redacted"
      ? [{ type: "redacted_thinking", data: proof.data }]
      : [{ type: "thinking", thinking, signature: proof.data }];
  if (acceptsUnsignedThinking && !proof && thinking !== "")
    return [{ type: "thinking", thinking, signature: "" }];
  return [];
}

/**
 * Removes a client's billing header from the start of the system prompt. It is meant for the
 * client's own vendor. For other providers, it only invalidates the prompt cache.
 */
function withoutAttribution(out: Outgoing): void {
  const system = out.get("system");
  if (!Array.isArray(system)) return;
  const [first, ...others] = system as readonly Json[];
  if (!isObject(first) || !asText(first["text"])?.startsWith("x-anthropic-billing-header:")) return;
  if (others.length > 0) out.set("system", others);
  else out.remove("system");
}

/**
 * Returns whether the response may contain reasoning that does not appear in the stream, because
 * the shown text is a summary. Models with `always` think without a request. Other models think if
 * any field of the request turns thinking on.
 */
export function mayHideReasoning(out: Outgoing, { thinking }: MessagesSettings): boolean {
  if (thinking === "none") return false;
  if (thinking === "always") return true;
  return requestsReasoning((field) => out.get(field), ["thinking"]) === "on";
}

/**
 * Lowers the output limit. The thinking budget is part of it, so thinking is reduced, or disabled
 * if it no longer fits.
 */
export function capOutput(out: Outgoing, tokens: number): void {
  const requested = out.get("max_tokens");
  if (typeof requested === "number" && requested <= tokens) return;
  out.set("max_tokens", tokens);
  const thinking = out.get("thinking");
  if (!isObject(thinking) || thinking["type"] !== "enabled") return;
  const { budget_tokens: budget } = thinking;
  if (typeof budget !== "number" || budget < tokens) return;
  out.set("thinking", tokens > 1024 ? { ...thinking, budget_tokens: 1024 } : { type: "disabled" });
}
