// Sends signatures back to the model that created them, on the same part. Without them, newer
// models reject their own calls.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import type { Proof } from "../../../model/request.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { familyOf } from "../dialect.ts";
import type { GeminiEncoding } from "./encoding-context.ts";
import { asObject, asText } from "../../json-values.ts";
import { ID } from "../constants.ts";

/** Documented placeholder for the signature of a call that another model made. */
const SKIP_VALIDATOR = "skip_thought_signature_validator";

/**
 * Returns the signature of a part. Returns undefined if another provider or another model family
 * signed it.
 */
export function signatureOf(proof: Opt<Proof>, e: GeminiEncoding): string | undefined {
  if (!proof) return undefined;
  if (proof.origin !== ID) return compatibleSignature(proof);
  const [made, asked] = [familyOf(proof.model), familyOf(e.of.model)];
  return made !== undefined && asked !== undefined && made !== asked ? undefined : proof.data;
}

/**
 * Returns a signature from Google's chat completions API, which issues the same signatures in a
 * different field.
 */
function compatibleSignature(proof: Proof): string | undefined {
  if (proof.origin !== "chat-completions" || proof.kind !== "extra_content") return undefined;
  try {
    const google = asObject(asObject(parseShallow(proof.data))?.["google"]);
    return asText(google?.["thought_signature"]) || undefined;
  } catch {
    return undefined;
  }
}

export function withSignature(part: JsonObject, proof: Opt<Proof>, e: GeminiEncoding): JsonObject {
  const signature = signatureOf(proof, e);
  return signature ? { ...part, thoughtSignature: signature } : part;
}

/**
 * Adds the placeholder to the first call of a step, which must be signed. The signature is missing
 * if another model made the call or if the client lost it.
 */
export function withRequiredSignatures(
  parts: readonly JsonObject[],
  e: GeminiEncoding,
): readonly JsonObject[] {
  if (!e.traits.signatures) return parts;
  const first = parts.findIndex((part) => "functionCall" in part);
  if (first < 0 || "thoughtSignature" in parts[first]!) return parts;
  return parts.with(first, { ...parts[first], thoughtSignature: SKIP_VALIDATOR });
}
