// Parses and creates W3C Trace Context headers, level 1. A header that cannot be parsed is treated
// as missing.

/** A parsed `traceparent`. IDs are lowercase hex. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** Parses a `traceparent`. Later versions may append fields, which are ignored. */
export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== "string") return undefined;
  const [, version, traceId, spanId, flags, more] = PARENT.exec(header) ?? [];
  if (!traceId || !spanId || !flags || version === "ff") return undefined;
  if (version === "00" && more !== undefined) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;

const MEMBER =
  /^[a-z\d][a-z\d_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const MOST_MEMBERS = 32;
/** Number of characters of `tracestate` that every implementation must accept. */
const MOST_STATE = 512;

/**
 * Returns the members of a `tracestate` that fit into the length that every implementation must
 * accept. Undefined if a member is invalid or there are more than 32.
 */
export function parseTracestate(header: unknown): string | undefined {
  if (typeof header !== "string" || header === "") return undefined;
  let state = "";
  let members = 0;
  for (const part of header.split(",")) {
    const member = part.trim();
    if (member === "") continue;
    if (!MEMBER.test(member) || ++members > MOST_MEMBERS) return undefined;
    if (state.length + member.length < MOST_STATE) state += state === "" ? member : `,${member}`;
  }
  return state === "" ? undefined : state;
}

// Bytes of random hex digits that are generated at a time. Ids must be unique but need not be
// secret, and slicing a long string is cheaper than generating each id.
const POOL_BYTES = 4096;
let pool = "";
let at = 0;

/** Returns `count` digits. The first 8 are not all zero, because an ID of zeros is invalid. */
function takeHexDigits(count: number): string {
  for (;;) {
    if (at + count > pool.length) {
      pool = Buffer.from(crypto.getRandomValues(new Uint8Array(POOL_BYTES)).buffer).toString("hex");
      at = 0;
    }
    const cut = pool.slice(at, (at += count));
    if (!cut.startsWith("00000000")) return cut;
  }
}

export const newTraceId = (): string => takeHexDigits(32);
export const newSpanId = (): string => takeHexDigits(16);

const DIGITS = "0123456789abcdef";

/**
 * Returns the ID of the nth child of a span. It is derived from the parent's ID, so it need not be
 * stored between the start of the child and its record.
 */
export function childSpanId(spanId: string, n: number): string {
  if (n < 16) {
    const code = spanId.charCodeAt(15);
    return spanId.slice(0, 15) + DIGITS[(code > 57 ? code - 87 : code - 48) ^ n]!;
  }
  const low = Number.parseInt(spanId.slice(9), 16) ^ n;
  return spanId.slice(0, 9) + low.toString(16).padStart(7, "0");
}
