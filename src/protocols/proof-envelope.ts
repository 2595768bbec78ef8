// Carries one provider's signed or encrypted data through a client of another protocol and back.
// The server half of a codec seals data for which its protocol has no field. It writes the data
// into the opaque field that its clients send back. The same server half opens it when it returns.
// Only the client half of the origin protocol reads the content. Pure: no I/O, no clock.
//
// An envelope is `tg1.` followed by base64url JSON. It is not secret and grants no authority. A
// client that forges an envelope only writes a part of the conversation that it could write anyway.
import { BOUNDS } from "../lib/bounds.ts";
import type { Proof } from "../model/request.ts";

const MARK = "tg1.";

export interface SealedProof {
  /**
   * Signed or encrypted data. If unset, the block is carried only because clients drop unsigned
   * reasoning.
   */
  proof?: Proof | undefined;
  /**
   * Exact reasoning text. Set if the origin verifies the text and the client may have re-wrapped
   * it.
   */
  text?: string | undefined;
  /** Whether the visible text is a summary, not the model's own reasoning. */
  summary?: boolean | undefined;
  /** Type of the preceding block that the proof belongs to. That block had no field for it. */
  precedingBlock?: "call" | "text" | undefined;
  /** Whether the reasoning came before the text that precedes its envelope. */
  isBeforeText?: boolean | undefined;
}

/**
 * Envelope content, with one-letter keys because it is sent with every later turn of the
 * conversation.
 */
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

/**
 * Returns the content of an envelope. Returns undefined if the data is not an envelope, is damaged,
 * or exceeds the size limit.
 */
export function unseal(data: string): SealedProof | undefined {
  if (!isSealed(data) || data.length > BOUNDS.envelope.max) return undefined;
  return toSealedProof(decodeEnvelope(data.slice(MARK.length)));
}

/**
 * Base64 prefix of a list that begins with the mark `tg1`. It is the same in both base64 alphabets,
 * because it contains none of the characters that differ.
 */
const SEALED_BYTES_PREFIX = "WyJ0ZzEi";

/**
 * Seals several proofs into one base64 value, for protocols whose single opaque field contains
 * bytes.
 */
export const sealBytes = (all: readonly SealedProof[]): string =>
  Buffer.from(JSON.stringify(["tg1", ...all.map(toEnvelopeJson)])).toString("base64");

export const isSealedBytes = (data: string): boolean => data.startsWith(SEALED_BYTES_PREFIX);

/**
 * Opens a value from `sealBytes`, in either base64 alphabet, padded or not, because clients
 * re-encode the bytes. Returns an empty list if the value is damaged.
 */
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
