// The last look of this protocol at a request before it leaves, on both lanes.
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { isSealed, unseal } from "../../envelope.ts";
import { asksThought } from "../../spending.ts";
import { refuseKept } from "../../look/index.ts";
import type { MessagesSettings } from "../dialect.ts";
import { isObject, text } from "../../json.ts";
import { COUNTED, ID, KNOWN } from "../words.ts";

export function prepare(out: Outgoing, of: CallContext, settings: MessagesSettings): void {
  const messages = out.get("messages");
  refuseKept(out, of.state, { code: "state_unsupported", param: "field" });
  const opened = Array.isArray(messages) ? unsealed(messages as readonly Json[], settings) : null;
  if (opened) out.set("messages", opened);
  if (of.op === "count")
    for (const field of KNOWN)
      if (!COUNTED.has(field) && out.get(field) !== undefined) out.drop(field);
  for (const field of settings.drop) {
    if (out.get(field) === undefined) continue;
    out.drop(field);
    of.lose(field, "dropped");
  }
  if (settings.signer !== ID) withoutAttribution(out);
  if (!settings.betas) out.header("anthropic-beta");
}

/**
 * A conversation may change models between two turns. Proofs that came in an envelope go back to the provider that made them and to
 * no other: there they are an invalid signature. Null when there are none, which is nearly always.
 */
function unsealed(messages: readonly Json[], settings: MessagesSettings): Json[] | null {
  let found = false;
  const opened = messages.flatMap((message): Json[] => {
    if (!isObject(message) || message["role"] !== "assistant") return [message];
    const { content } = message;
    if (!Array.isArray(content) || !content.some(carriesSeal)) return [message];
    found = true;
    const kept = (content as readonly Json[]).flatMap((block) =>
      carriesSeal(block) ? openedBlock(block as JsonObject, settings) : [block],
    );
    return kept.length > 0 ? [{ ...message, content: kept }] : [];
  });
  return found ? opened : null;
}

const sealOf = (block: Json): string | undefined =>
  isObject(block)
    ? block["type"] === "thinking"
      ? text(block["signature"])
      : block["type"] === "redacted_thinking"
        ? text(block["data"])
        : undefined
    : undefined;

const carriesSeal = (block: Json): boolean => isSealed(sealOf(block) ?? "");

function openedBlock(block: JsonObject, { signer, unsigned }: MessagesSettings): JsonObject[] {
  const sealed = unseal(sealOf(block)!);
  const proof = sealed?.proof;
  const thinking = sealed?.text ?? text(block["thinking"]) ?? "";
  if (!sealed || sealed.of !== undefined) return [];
  if (proof?.origin === signer)
    return proof.kind === "redacted"
      ? [{ type: "redacted_thinking", data: proof.data }]
      : [{ type: "thinking", thinking, signature: proof.data }];
  if (unsigned && !proof && thinking !== "") return [{ type: "thinking", thinking, signature: "" }];
  return [];
}

/** A client's note to its own vendor at the head of the system prompt; for other providers it only spoils the prompt cache. */
function withoutAttribution(out: Outgoing): void {
  const system = out.get("system");
  if (!Array.isArray(system)) return;
  const [first, ...others] = system as readonly Json[];
  if (!isObject(first) || !text(first["text"])?.startsWith("x-anthropic-billing-header:")) return;
  if (others.length > 0) out.set("system", others);
  else out.drop("system");
}

/** What is shown of thoughts is a digest. Some models think unasked; and a field that is not told of is the backend's own habit. */
export function thinks(out: Outgoing, { thinking }: MessagesSettings): boolean {
  if (thinking === "none") return false;
  if (thinking === "always") return true;
  return asksThought((field) => out.get(field), ["thinking"]) === "on";
}
