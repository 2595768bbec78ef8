// How what one provider signed or encrypted travels through a client that speaks another protocol, and back. Any codec's
// server half seals what its wire has no place for into the one opaque field that clients of that wire echo; the same
// server half opens it when it comes back; only the origin's own client half ever reads what is inside. Pure.
//
// An envelope is `tg1.` and base64url JSON. It is no secret and carries no authority: a client that forges one has only
// written the part of the conversation that was theirs to write anyway.
import { BOUNDS } from "../lib/bounds.ts";
import type { Proof } from "../model/request.ts";

const MARK = "tg1.";

export interface SealedProof {
  /** Absent when there was none: the block is carried because clients drop unsigned reasoning. */
  proof?: Proof | undefined;
  /** The reasoning's text, byte for byte, where the origin checks it and the client may have wrapped it anew. */
  text?: string | undefined;
  /** The visible text is a digest, not the model's own reasoning. */
  summary?: boolean | undefined;
  /** The proof belongs to the block just before, of this type, which had no place for it. */
  precedingBlock?: "call" | "text" | undefined;
  /** The reasoning came before the words that stand before its envelope. */
  isBeforeText?: boolean | undefined;
}

/** One letter a member: it travels with every turn of the conversation from now on. */
interface EnvelopeJson {
  o?: string | undefined;
  k?: string | undefined;
  d?: string | undefined;
  i?: string | undefined;
  m?: string | undefined;
  t?: string | undefined;
  s?: 1 | undefined;
  b?: string | undefined;
  a?: 1 | undefined;
}

export const isSealed = (data: string): boolean => data.startsWith(MARK);

export const seal = (sealed: SealedProof): string =>
  MARK + Buffer.from(JSON.stringify(toEnvelopeJson(sealed))).toString("base64url");

/** Undefined when it is not an envelope of ours, or no longer whole. */
export function unseal(data: string): SealedProof | undefined {
  if (!isSealed(data) || data.length > BOUNDS.envelope.max) return undefined;
  return toSealedProof(decodeEnvelope(data.slice(MARK.length)));
}

/** How the base64 of a list that begins with our mark begins; in both alphabets, since neither of its odd letters is in it. */
const SEALED_BYTES_PREFIX = "WyJ0ZzEi";

/** Where a wire's opaque field is bytes, and one field must do for all that has no place: nothing but base64. */
export const sealBytes = (all: readonly SealedProof[]): string =>
  Buffer.from(JSON.stringify(["tg1", ...all.map(toEnvelopeJson)])).toString("base64");

export const isSealedBytes = (data: string): boolean => data.startsWith(SEALED_BYTES_PREFIX);

/** In both alphabets, padded or not: clients write the bytes anew. Nothing in it when it is no longer whole. */
export function unsealBytes(data: string): readonly SealedProof[] {
  if (!isSealedBytes(data) || data.length > BOUNDS.envelope.max) return [];
  const letters = decodeEnvelope(data);
  return Array.isArray(letters)
    ? letters.slice(1).flatMap((letter) => toSealedProof(letter) ?? [])
    : [];
}

const toEnvelopeJson = ({
  proof,
  text,
  summary,
  precedingBlock,
  isBeforeText,
}: SealedProof): EnvelopeJson => ({
  o: proof?.origin,
  k: proof?.kind,
  d: proof?.data,
  i: proof?.itemId,
  m: proof?.model,
  t: text,
  s: summary ? 1 : undefined,
  b: precedingBlock,
  a: isBeforeText ? 1 : undefined,
});

function decodeEnvelope(base64: string): unknown {
  try {
    return JSON.parse(Buffer.from(base64, "base64").toString());
  } catch {
    return undefined;
  }
}

function toSealedProof(letter: unknown): SealedProof | undefined {
  if (typeof letter !== "object" || letter === null) return undefined;
  const { o, k, d, i, m, t, s, b, a } = letter as EnvelopeJson;
  const proof =
    typeof o === "string" && typeof k === "string" && typeof d === "string"
      ? {
          origin: o,
          kind: k,
          data: d,
          ...(typeof i === "string" && { itemId: i }),
          ...(typeof m === "string" && { model: m }),
        }
      : undefined;
  return {
    ...(proof && { proof }),
    ...(typeof t === "string" && { text: t }),
    ...(s === 1 && { summary: true }),
    ...((b === "call" || b === "text") && { precedingBlock: b }),
    ...(a === 1 && { isBeforeText: true }),
  };
}
