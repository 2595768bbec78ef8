// The protocol's name and the form of its IDs.
import { createHash } from "node:crypto";
import { createSourceMemory } from "../source-memory.ts";

/**
 * Origin of this protocol: of proofs that are sent without an envelope, and of items and parts that
 * only this protocol has.
 */
export const ORIGIN = "responses";

/**
 * Returns a call ID. This protocol links calls and results by an ID of at most 64 characters, so a
 * longer one becomes its digest. The digest depends only on the ID, so it is the same at both ends
 * of the link and in every later turn.
 */
export const callId = (id: string): string => (id.length > 64 ? `call_${digestText(id)}` : id);

/** Returns a digest of any text, with 43 characters. */
export const digestText = (of: string): string =>
  createHash("sha256").update(of).digest("base64url");

export const { remember: rememberSource, sourceOf } = createSourceMemory();
