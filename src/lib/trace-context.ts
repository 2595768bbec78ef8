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
export function readParent(header: unknown): TraceParent | undefined {
  if (typeof header !== "string") return undefined;
  const [, version, traceId, spanId, flags, more] = PARENT.exec(header) ?? [];
  if (!traceId || !spanId || !flags || version === "ff") return undefined;
  if (version === "00" && more !== undefined) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const writeParent = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;

const MEMBER =
  /^[a-z\d][a-z\d_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const MOST_MEMBERS = 32;
/** Every reader has to take so many characters. */
const MOST_STATE = 512;

/** The members of a `tracestate`, as many as every reader takes; undefined where one of them cannot be read. */
export function readState(header: unknown): string | undefined {
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

// sfc32: four words of state, ten operations a number. Ids have to differ, and need not be secret.
let [a = 1, b = 2, c = 3, d = 4] = crypto.getRandomValues(new Int32Array(4));

function next(): number {
  const sum = (a + b + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = (((c << 21) | (c >>> 11)) + sum) | 0;
  return sum >>> 0;
}

const hex = (word: number): string => word.toString(16).padStart(8, "0");

/** Never zero, which would be no id. */
function nonzero(): number {
  for (;;) {
    const word = next();
    if (word !== 0) return word;
  }
}

export const newTraceId = (): string => hex(next()) + hex(next()) + hex(next()) + hex(nonzero());
export const newSpanId = (): string => hex(nonzero()) + hex(next());

/** Of the nth child of a span of ours: nothing has to be kept of it between its beginning and its record. */
export const childSpanId = (spanId: string, n: number): string =>
  spanId.slice(0, 8) + hex((Number.parseInt(spanId.slice(8), 16) ^ Math.imul(n, 0x9e3779b1)) >>> 0);
