// Finds the parts of a form in its bytes, without copying them. A boundary must be a separate line
// and may occur nowhere else, so that a less strict parser finds the same parts.
import { isUtf8 } from "node:buffer";
import { BOUNDS, boundMessage, type BoundName } from "../../lib/bounds.ts";

export interface MultipartPart {
  /** The name with one level of escapes decoded, such as `images[][file_id]`. */
  readonly name: string;
  /** The file name. A part that has one is a file. */
  readonly filename: string | undefined;
  readonly mime: string | undefined;
  /** Offset of the part's boundary. The part extends to the next boundary. */
  readonly start: number;
  readonly end: number;
  /** Offset of the part's content. */
  readonly contentStart: number;
  readonly contentEnd: number;
}

/** The reason why a form is ambiguous or malformed. */
export interface MultipartFlaw {
  readonly code: string;
  readonly message: string;
  readonly bound?: BoundName;
}

export type MultipartParts =
  | { readonly parts: readonly MultipartPart[]; readonly end: number; readonly flaw?: undefined }
  | { readonly flaw: MultipartFlaw };

const CRLF = Buffer.from("\r\n");
const HEADERS_END = Buffer.from("\r\n\r\n");
const CLOSE = Buffer.from("--");
export const MAX_PARTS = BOUNDS.formParts.max;
export const MAX_HEADER_BYTES = BOUNDS.formHead.max;

const createFlaw = (message: string, code = "invalid_form"): { readonly flaw: MultipartFlaw } => ({
  flaw: { code, message },
});

const createBoundFlaw = (bound: "formParts" | "formHead"): { readonly flaw: MultipartFlaw } => ({
  flaw: { code: BOUNDS[bound].error[1], message: boundMessage(bound), bound },
});

export const TRUNCATED = "The form ends before its final boundary.";
export const BOUNDARY_IN_PART = "The form boundary occurs inside one of the form's parts.";

export function parseMultipart(raw: Buffer, boundary: string): MultipartParts {
  const mark = Buffer.from(`--${boundary}`, "latin1");
  const parts: MultipartPart[] = [];
  // Some clients send a line break before the first boundary.
  let start = startsWithAt(raw, 0, CRLF) ? CRLF.length : 0;
  if (!startsWithAt(raw, start, mark))
    return createFlaw(
      raw.indexOf(mark) < 0 ? TRUNCATED : "The form does not start with its boundary.",
    );
  for (;;) {
    const at = start + mark.length;
    if (startsWithAt(raw, at, CLOSE)) {
      const rest = at + CLOSE.length;
      const over =
        raw.length === rest || (raw.length === rest + 2 && startsWithAt(raw, rest, CRLF));
      return over
        ? { parts, end: start }
        : createFlaw("The form has data after its final boundary.");
    }
    if (!startsWithAt(raw, at, CRLF))
      return createFlaw(raw.length - at < 2 ? TRUNCATED : BOUNDARY_IN_PART);
    if (parts.length === MAX_PARTS) return createBoundFlaw("formParts");
    const next = raw.indexOf(mark, at);
    if (next < 0) return createFlaw(TRUNCATED);
    const part = parsePart(raw, start, at + CRLF.length, next);
    if ("flaw" in part) return part;
    parts.push(part);
    start = next;
  }
}

const startsWithAt = (raw: Buffer, at: number, what: Buffer): boolean =>
  raw.length >= at + what.length && raw.compare(what, 0, what.length, at, at + what.length) === 0;

function parsePart(
  raw: Buffer,
  start: number,
  head: number,
  next: number,
): MultipartPart | { readonly flaw: MultipartFlaw } {
  // The line break before a boundary belongs to the boundary.
  const to = next - CRLF.length;
  if (to < head || !startsWithAt(raw, to, CRLF)) return createFlaw(BOUNDARY_IN_PART);
  // An empty header block ends at its beginning.
  const length = raw
    .subarray(head - CRLF.length, Math.min(to, head + MAX_HEADER_BYTES))
    .indexOf(HEADERS_END);
  if (length < 0)
    return to - head > MAX_HEADER_BYTES
      ? createBoundFlaw("formHead")
      : createFlaw("A part of the form has no content.");
  const from = head - CRLF.length + length + HEADERS_END.length;
  const lines = raw.subarray(head, Math.max(head, from - HEADERS_END.length));
  const headers = isUtf8(lines) ? parsePartHeaders(lines.toString()) : undefined;
  return headers
    ? { ...headers, start, end: next, contentStart: from, contentEnd: to }
    : createFlaw("A part of the form has ambiguous headers.");
}

type PartHeaders = Pick<MultipartPart, "name" | "filename" | "mime">;

/**
 * Parses the headers of a part. Returns undefined if a header is malformed or repeated, or if the
 * content would have to be decoded first.
 */
export function parsePartHeaders(text: string): PartHeaders | undefined {
  let disposition: ReturnType<typeof parseHeaderValue>;
  let mime: string | undefined;
  const seen = new Set<string>();
  for (const line of text.split("\r\n")) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^\r\n\0]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const known = name.toLowerCase();
    if (seen.has(known)) return undefined;
    seen.add(known);
    if (known === "content-disposition") disposition = parseHeaderValue(value);
    else if (known === "content-type") mime = value.trim();
    else if (known === "content-transfer-encoding" && !/^(?:7bit|8bit|binary)\s*$/i.test(value))
      return undefined;
  }
  if (disposition?.type !== "form-data") return undefined;
  const { parameters } = disposition;
  const name = parameters.get("name");
  const encoded = parameters.get("filename*");
  if (name === undefined || name === "" || name.includes("\\") || parameters.has("name*"))
    return undefined;
  const filename = parameters.get("filename") ?? (encoded && decodeExtendedValue(encoded));
  if (encoded !== undefined && filename === undefined) return undefined;
  return { name: unescapeName(name), filename: filename && unescapeName(filename), mime };
}

/** Decodes the three escapes that browsers use, and the escaped quote that other clients use. */
const unescapeName = (text: string): string =>
  text.replaceAll(/%22|%0D|%0A|\\"/gi, (escape) =>
    escape === "%0D" || escape === "%0d" ? "\r" : escape === "%0A" || escape === "%0a" ? "\n" : '"',
  );

/** Decodes an extended value such as `UTF-8''na%C3%AFve.wav`. */
function decodeExtendedValue(text: string): string | undefined {
  const [, encoded] = /^utf-8'[\w-]*'(.*)$/i.exec(text) ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

// Parses the headers of forms and of their parts strictly. A header that two parsers could read
// differently is rejected.
/**
 * Matches one parameter such as `; name="value"` after a media type. Quoted values keep their
 * escapes.
 */
const PARAMETER = /[ \t]*;[ \t]*([\w!#$&^.+*-]+)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s;"\\]+))/y;

interface ParsedHeader {
  /** In lowercase. */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Parses a header such as `form-data; name="model"`. Returns undefined if it is malformed or
 * repeats a parameter.
 */
export function parseHeaderValue(header: string): ParsedHeader | undefined {
  const end = header.indexOf(";");
  const type = (end < 0 ? header : header.slice(0, end)).trim().toLowerCase();
  const parameters = new Map<string, string>();
  let at = end < 0 ? header.length : header.slice(0, end).trimEnd().length;
  while (at < header.length) {
    PARAMETER.lastIndex = at;
    const found = PARAMETER.exec(header);
    if (!found) break;
    const name = found[1]!.toLowerCase();
    if (parameters.has(name)) return undefined;
    parameters.set(name, found[2] ?? found[3]!);
    at = PARAMETER.lastIndex;
  }
  return header.slice(at).trim() === "" ? { type, parameters } : undefined;
}

const BOUNDARY = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/;
export const isMultipart = (contentType: string): boolean =>
  /^multipart\/form-data[ \t]*(?:;|$)/i.test(contentType);
/** Returns the boundary of a content type, or undefined if it has no valid boundary. */
export function boundaryOf(contentType: string): string | undefined {
  const boundary = parseHeaderValue(contentType)?.parameters.get("boundary");
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined;
}

/** Returns the content type for a form with this boundary. */
export const multipartContentType = (boundary: string): string =>
  `multipart/form-data; boundary=${/^[\w'+\-.]+$/.test(boundary) ? boundary : `"${boundary}"`}`;
