// Parses request bodies. A body with more than one possible meaning is rejected.
import { isAscii, isUtf8 } from "node:buffer";
import { scan, Scanner, type Scan, type Span } from "../../lib/json/json-scanner.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Body } from "../../model/values.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../../lib/yield.ts";
import { parseMultipartBody, type MultipartLayout } from "./multipart-body.ts";
import { boundaryOf, isMultipart } from "./multipart-parser.ts";

/** Bytes scanned before other work gets a turn. */
const SCAN_STEP_BYTES = 4 * 1024 * 1024;

export interface ParsedBody {
  body: Body;
  /** Positions of the members in the JSON text. */
  spans: ReadonlyMap<string, Span> | null;
  /** Positions of the fields in the form. */
  multipart: MultipartLayout | undefined;
  /** Whether a case-insensitive parser could confuse a name with another one. */
  hasCaseVariants: boolean;
}

/** The parsed body of a request whose method has no body. */
export const NO_BODY: ParsedBody = {
  body: {},
  spans: null,
  multipart: undefined,
  hasCaseVariants: false,
};

const rejectBody = (message: string, code: string): never => fail("invalid", message, { code });

/**
 * Parses a body. A large body is parsed in several event loop turns, so that other requests do not
 * wait for all of it. `type`: the content type that the client sent.
 */
export function parseBody(
  raw: Buffer,
  type: string,
  maxValues: number,
): ParsedBody | Promise<ParsedBody> {
  if (isMultipart(type)) return parseMultipartForm(raw, type);
  if (raw.length === 0) rejectBody("The body is empty.", "invalid_json");
  const ascii = isAscii(raw);
  if (!ascii && !isUtf8(raw)) rejectBody("The body is not valid UTF-8.", "invalid_utf8");
  const decodeText = () => raw.toString(ascii ? "latin1" : "utf8");
  if (raw.length >= LARGE_BODY_BYTES) return parseInSteps(raw, maxValues, decodeText);
  const seen = assertWithinBounds(scan(raw, maxValues), maxValues);
  return parseJsonBody(decodeText(), seen);
}

async function parseInSteps(
  raw: Buffer,
  maxValues: number,
  decodeText: () => string,
): Promise<ParsedBody> {
  const scanner = new Scanner(raw, maxValues);
  let scanned: Scan | undefined;
  while (!(scanned = scanner.scanTo(SCAN_STEP_BYTES))) await yieldToEventLoop();
  assertWithinBounds(scanned, maxValues);
  await yieldToEventLoop();
  const text = decodeText();
  await yieldToEventLoop();
  const parsedBody = parseJsonBody(text, scanned);
  await yieldToEventLoop();
  return parsedBody;
}

/** Throws if the scan found that the text exceeds a bound. Such a text is not parsed. */
function assertWithinBounds(seen: Scan, values: number): Scan {
  const bound = seen.flaw?.bound;
  if (bound) failBoundExceeded(bound, bound === "jsonValues" ? values : undefined);
  return seen;
}

function parseJsonBody(text: string, seen: Scan): ParsedBody {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const [, at] = /position (\d+)/.exec((error as Error).message) ?? [];
    rejectBody(`The body is not JSON${at ? `: see character ${at}` : ""}.`, "invalid_json");
  }
  if (seen.flaw) return rejectBody(seen.flaw.message, seen.flaw.code);
  return {
    body: body as Body,
    spans: seen.spans,
    multipart: undefined,
    hasCaseVariants: seen.hasCaseVariants,
  };
}

function parseMultipartForm(raw: Buffer, type: string): ParsedBody {
  const boundary =
    boundaryOf(type) ??
    rejectBody("The Content-Type of a form must have exactly one valid boundary.", "invalid_form");
  const seen = parseMultipartBody(raw, boundary);
  if (!seen.flaw)
    return {
      body: seen.body,
      spans: null,
      multipart: seen.layout,
      hasCaseVariants: seen.hasCaseVariants,
    };
  if (seen.flaw.bound) failBoundExceeded(seen.flaw.bound);
  return rejectBody(seen.flaw.message, seen.flaw.code);
}
