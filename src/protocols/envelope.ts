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
  of?: "call" | "text" | undefined;
}

/** One letter a member: it travels with every turn of the conversation from now on. */
interface Letter {
  o?: string | undefined;
  k?: string | undefined;
  d?: string | undefined;
  i?: string | undefined;
  m?: string | undefined;
  t?: string | undefined;
  s?: 1 | undefined;
  b?: string | undefined;
}

export const isSealed = (data: string): boolean => data.startsWith(MARK);

export function seal({ proof, text, summary, of }: SealedProof): string {
  const letter: Letter = {
    o: proof?.origin,
    k: proof?.kind,
    d: proof?.data,
    i: proof?.itemId,
    m: proof?.model,
    t: text,
    s: summary ? 1 : undefined,
    b: of,
  };
  return MARK + Buffer.from(JSON.stringify(letter)).toString("base64url");
}

/** Undefined when it is not an envelope of ours, or no longer whole. */
export function unseal(data: string): SealedProof | undefined {
  if (!isSealed(data) || data.length > BOUNDS.envelope.most) return undefined;
  let letter: Letter;
  try {
    letter = JSON.parse(Buffer.from(data.slice(MARK.length), "base64url").toString());
  } catch {
    return undefined;
  }
  if (typeof letter !== "object" || letter === null) return undefined;
  const { o, k, d, i, m, t, s, b } = letter;
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
    ...((b === "call" || b === "text") && { of: b }),
  };
}
