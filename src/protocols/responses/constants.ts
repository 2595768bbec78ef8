// The words of this wire: its name, and how it spells ids.
import { createHash } from "node:crypto";
import { createSourceMemory } from "../source-memory.ts";

/** This protocol, as an origin: of proofs that travel bare, of items and parts that only it understands. */
export const ORIGIN = "responses";

/**
 * Calls are linked by an id of at most 64 characters here. A longer one becomes its digest, on both ends of the link
 * and in every later turn, because nothing but the id itself decides.
 */
export const callId = (id: string): string => (id.length > 64 ? `call_${digestText(id)}` : id);

/** 43 characters that stand for any text. */
export const digestText = (of: string): string =>
  createHash("sha256").update(of).digest("base64url");

export const { remember: rememberSource, sourceOf } = createSourceMemory();
