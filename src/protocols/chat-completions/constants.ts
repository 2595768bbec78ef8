// Constants of this protocol, and the data that its server half and client half exchange.
import { createHash } from "node:crypto";
import { parseShallow } from "../../lib/json/json-scanner.ts";
import { createSourceMemory } from "../source-memory.ts";
import type { Json, Opt, Proof } from "../../plugin/index.ts";

export const ID = "chat-completions";

export const { remember: rememberSource, sourceOf } = createSourceMemory();

/**
 * Returns the content of a proof of this protocol. The proof may have come in an envelope that a
 * client wrote, so anything other than an object or a list is ignored.
 */
export function proofContent(proof: Proof): Json | undefined {
  try {
    const held = parseShallow(proof.data);
    return typeof held === "object" && held !== null ? (held as Json) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the words of the given texts as a set. A space-separated list of names is easier to read
 * than an array.
 */
export const splitNames = (...sentences: readonly string[]): ReadonlySet<string> =>
  new Set(sentences.flatMap((s) => s.split(" ")));

/** Returns letters and digits derived from a text. The same text always yields the same result. */
export function digest(of: string, length: number): string {
  const hex = createHash("sha256").update(of).digest("hex");
  return BigInt(`0x${hex}`).toString(36).padStart(49, "0").slice(-length);
}

/** Returns a call's arguments as a string. Some backends send them as an object. */
export const argumentsText = (v: Opt<Json>): string =>
  typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v);
