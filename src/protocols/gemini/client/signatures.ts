// What a model signed goes back to it, on the part where it stood: without it, newer models refuse their own calls.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import type { Proof } from "../../../model/request.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import { familyOf } from "../dialect.ts";
import type { GeminiEncoding } from "./encoding-context.ts";
import { asObject, asText } from "../../json-values.ts";
import { ID } from "../constants.ts";

/** Documented: it stands in for the signature of a call that some other model made. */
const SKIP_VALIDATOR = "skip_thought_signature_validator";

/** The signature of a part; nothing for what another provider, or another family of models, signed. */
export function signatureOf(proof: Opt<Proof>, e: GeminiEncoding): string | undefined {
  if (!proof) return undefined;
  if (proof.origin !== ID) return compatibleSignature(proof);
  const [made, asked] = [familyOf(proof.model), familyOf(e.of.model)];
  return made !== undefined && asked !== undefined && made !== asked ? undefined : proof.data;
}

/** Google's imitation of chat completions hands out the same signatures, in a place of its own. */
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

/** Of the calls of one step, the first must be signed: history that another model made, or a client that lost it, is not. */
export function withRequiredSignatures(
  parts: readonly JsonObject[],
  e: GeminiEncoding,
): readonly JsonObject[] {
  if (!e.traits.signatures) return parts;
  const first = parts.findIndex((part) => "functionCall" in part);
  if (first < 0 || "thoughtSignature" in parts[first]!) return parts;
  return parts.with(first, { ...parts[first], thoughtSignature: SKIP_VALIDATOR });
}
