// Decodes earlier reasoning that clients send back in one of several non-standard fields. Data that
// another protocol's provider signed comes back inside an envelope and is forwarded unchanged.
import type { Block, Json, JsonObject, Opt, Proof } from "../../../plugin/index.ts";
import { isSealed, unseal, type SealedProof } from "../../proof-envelope.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { ID } from "../constants.ts";

/** Format name of the gateway's own entries in `reasoning_details`. */
export const SEALED_FORMAT = "tollgate-v1";

export function reasoningBlocks(message: JsonObject): Block[] {
  const plain = asText(message["reasoning_content"]) ?? asText(message["reasoning"]);
  const details = asList(message["reasoning_details"]);
  if (details.length > 0) return detailed(details, plain);
  const signed = asList(message["thinking_blocks"]).flatMap((b) => signedOf(asObject(b)) ?? []);
  if (signed.length > 0) return signed;
  return plain ? [{ type: "reasoning", text: plain }] : [];
}

function detailed(details: readonly Json[], plain: Opt<string>): Block[] {
  const blocks: Block[] = [];
  const native: Json[] = [];
  for (const detail of details) {
    const sealed = unsealDetail(asObject(detail));
    if (!sealed) native.push(detail);
    else if (!sealed.precedingBlock) blocks.push(reasoningOf(sealed));
  }
  if (native.length > 0) {
    const proof: Proof = { origin: ID, kind: "reasoning_details", data: JSON.stringify(native) };
    blocks.push(
      omitUndefined({
        type: "reasoning" as const,
        text: plain ?? (textIn(native) || undefined),
        proof,
      }),
    );
  } else if (
    plain &&
    blocks.every((b) => b.type === "reasoning" && b.text === undefined && b.summary === undefined)
  ) {
    // A proof without text belongs to the reasoning text of the message.
    const [first, ...more] = blocks as Extract<Block, { type: "reasoning" }>[];
    return [{ ...first, type: "reasoning", text: plain }, ...more];
  }
  return blocks;
}

const reasoningOf = ({ proof, text, summary }: SealedProof): Block =>
  omitUndefined({
    type: "reasoning" as const,
    text: summary ? undefined : text,
    summary: summary ? [text ?? ""] : undefined,
    proof,
  });

const unsealDetail = (detail: Opt<JsonObject>): SealedProof | undefined => {
  const data = asText(detail?.["data"]);
  return data !== undefined && isSealed(data) ? unseal(data) : undefined;
};

/** Decodes one of Anthropic's own blocks, which some clients keep next to the text. */
function signedOf(block: Opt<JsonObject>): Block | undefined {
  const signature = asText(block?.["signature"]);
  const redacted = asText(block?.["data"]);
  if (block?.["type"] === "redacted_thinking" && redacted !== undefined)
    return { type: "reasoning", proof: { origin: "messages", kind: "redacted", data: redacted } };
  const thinking = asText(block?.["thinking"]);
  if (block?.["type"] !== "thinking" || thinking === undefined) return undefined;
  return omitUndefined({
    type: "reasoning" as const,
    text: thinking,
    proof: signature ? { origin: "messages", kind: "signature", data: signature } : undefined,
  });
}

/** Returns the text of `reasoning_details` entries. */
export const textIn = (details: readonly Json[]): string =>
  details
    .map((d) => asText(asObject(d)?.["text"]) ?? asText(asObject(d)?.["summary"]) ?? "")
    .join("");

/** Returns a call's signature. The gateway uses the same field as Gemini's compatibility API. */
export function callProof(call: JsonObject): Proof | undefined {
  const extra = asObject(call["extra_content"]);
  if (!extra) return undefined;
  const signature = asText(asObject(extra["google"])?.["thought_signature"]);
  const sealed = signature === undefined ? undefined : unseal(signature);
  return sealed?.proof ?? { origin: ID, kind: "extra_content", data: JSON.stringify(extra) };
}

/**
 * Returns the signature of a message's text. It is in the message's own field, or in an entry of
 * `reasoning_details`.
 */
export function textProof(message: JsonObject): Proof | undefined {
  if (asObject(message["extra_content"])) return callProof(message);
  for (const detail of asList(message["reasoning_details"])) {
    const sealed = unsealDetail(asObject(detail));
    if (sealed?.precedingBlock === "text") return sealed.proof;
  }
  return undefined;
}
