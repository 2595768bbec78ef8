// W3C Trace Context, level 1: which trace a request is a part of. A header that cannot be read is as if it had not come.

/** What a `traceparent` says. The ids are hex, in lower case. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** A later version may say more behind what the first one says, and is read as that. */
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
/** Every reader has to take so many characters. */
const MOST_STATE = 512;

/** The members of a `tracestate`, as many as every reader takes; undefined where one of them cannot be read. */
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

// Ids have to differ, and need not be secret: they are cut from long texts of random digits, since a text costs more to make than to cut.
const POOL_BYTES = 4096;
let pool = "";
let at = 0;

/** So many digits, of which the first eight are not all zero: an id of zeros is none. */
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

/** Of the nth child of a span of ours: nothing has to be kept of it between its beginning and its record. */
export function childSpanId(spanId: string, n: number): string {
  if (n < 16) {
    const code = spanId.charCodeAt(15);
    return spanId.slice(0, 15) + DIGITS[(code > 57 ? code - 87 : code - 48) ^ n]!;
  }
  const low = Number.parseInt(spanId.slice(9), 16) ^ n;
  return spanId.slice(0, 9) + low.toString(16).padStart(7, "0");
}
