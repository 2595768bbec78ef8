// The last look of this protocol at a request before it leaves, in both modes.
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { isSealed, unseal } from "../../proof-envelope.ts";
import { requestsReasoning } from "../../cost-analysis.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import type { MessagesSettings } from "../dialect.ts";
import { isObject, asText } from "../../json-values.ts";
import { TOKEN_COUNT_FIELDS, ID, KNOWN_TOP_LEVEL_FIELDS } from "../constants.ts";

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
  for (const field of settings.dropFields) {
    if (out.get(field) === undefined) continue;
    out.remove(field);
    of.reportLoss(field, "dropped");
  }
  if (settings.signer !== ID) withoutAttribution(out);
  if (!settings.betas) out.setHeader("anthropic-beta");
}

/**
 * A conversation may change models between two turns. Proofs that came in an envelope go back to the provider that made them and to
 * no other: there they are an invalid signature. Null when there are none, which is nearly always.
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

/** A client's note to its own vendor at the head of the system prompt; for other providers it only spoils the prompt cache. */
function withoutAttribution(out: Outgoing): void {
  const system = out.get("system");
  if (!Array.isArray(system)) return;
  const [first, ...others] = system as readonly Json[];
  if (!isObject(first) || !asText(first["text"])?.startsWith("x-anthropic-billing-header:")) return;
  if (others.length > 0) out.set("system", others);
  else out.remove("system");
}

/** What is shown of thoughts is a digest. Some models think unasked; and a field that is not told of is the backend's own habit. */
export function mayHideReasoning(out: Outgoing, { thinking }: MessagesSettings): boolean {
  if (thinking === "none") return false;
  if (thinking === "always") return true;
  return requestsReasoning((field) => out.get(field), ["thinking"]) === "on";
}
