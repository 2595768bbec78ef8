// The words of this wire: its name, and what its two halves tell each other.
import { createHash } from "node:crypto";
import { parseShallow } from "../../lib/json/json-scanner.ts";
import { createSourceMemory } from "../source-memory.ts";
import type { Json, Opt, Proof } from "../../plugin/index.ts";

export const ID = "chat-completions";

export const { remember: rememberSource, sourceOf } = createSourceMemory();

/** What a proof of this wire holds. It may have come in an envelope, and then a client wrote it: anything else than an object or a list is nothing. */
export function proofContent(proof: Proof): Json | undefined {
  try {
    const held = parseShallow(proof.data);
    return typeof held === "object" && held !== null ? (held as Json) : undefined;
  } catch {
    return undefined;
  }
}

/** A list of names is easier to read as a sentence. */
export const splitNames = (...sentences: readonly string[]): ReadonlySet<string> =>
  new Set(sentences.flatMap((s) => s.split(" ")));

/** Letters and digits that stand for any text, the same ones every time. */
export function digest(of: string, length: number): string {
  const hex = createHash("sha256").update(of).digest("hex");
  return BigInt(`0x${hex}`).toString(36).padStart(49, "0").slice(-length);
}

/** A call's arguments as the string they are meant to be. */
export const argumentsText = (v: Opt<Json>): string =>
  typeof v === "string" ? v : v === undefined || v === null ? "" : JSON.stringify(v);
