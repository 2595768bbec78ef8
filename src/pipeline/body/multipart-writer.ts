// Encodes a body as a multipart form: bodies that a codec produced, and parts that replace a
// client's own parts.
import { randomBytes } from "node:crypto";
import { fail } from "../../model/error.ts";
import {
  isFilePart,
  type Body,
  type Field,
  type FilePart,
  type Json,
  type Opt,
} from "../../model/values.ts";
import type { MultipartLayout } from "./multipart-body.ts";
import type { MultipartPart } from "./multipart-parser.ts";

/** The headers and content of one part, without its boundary. */
interface EncodedPart {
  readonly headers: Buffer;
  readonly content: Buffer;
}

const MIME = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:[ \t]*;[\x20-\x7e]*)?$/;
const LINE = Buffer.from("\r\n");

export const createBoundary = (): string => `tollgate-${randomBytes(16).toString("hex")}`;

/** Encodes a whole body as `multipart/form-data`. */
export function encodeMultipart(body: Body, boundary: string): Buffer {
  const parts: EncodedPart[] = [];
  for (const field in body) encodeField(field, body[field], parts);
  return Buffer.concat([...joinParts(parts, boundary), Buffer.from(`--${boundary}--\r\n`)]);
}

/** Joins parts, each preceded by its boundary. */
function joinParts(parts: readonly EncodedPart[], boundary: string): Buffer[] {
  const line = Buffer.from(`--${boundary}\r\n`);
  return parts.flatMap(({ headers, content }) => [line, headers, content, LINE]);
}

/**
 * Encodes a field the way clients do: members in brackets, and one part per list element. Undefined
 * and null values are omitted.
 */
function encodeField(name: string, value: Opt<Field>, into: EncodedPart[]): void {
  if (value === undefined || value === null) return;
  if (isFilePart(value))
    into.push({ headers: encodePartHeaders(name, value), content: value.data });
  else if (Array.isArray(value)) encodeList(name, value as readonly (Json | FilePart)[], into);
  else if (typeof value === "object")
    for (const [member, inside] of Object.entries(value))
      encodeField(`${name}[${member}]`, inside as Field, into);
  else into.push({ headers: encodePartHeaders(name), content: Buffer.from(String(value)) });
}

function encodeList(name: string, list: readonly (Json | FilePart)[], into: EncodedPart[]): void {
  for (const one of list) {
    if (Array.isArray(one))
      fail("unsupported", `${name} contains a nested list, which a form cannot represent.`, {
        param: name,
        code: "unsupported_parameter",
      });
    encodeField(`${name}[]`, one, into);
  }
}

function encodePartHeaders(name: string, file?: FilePart): Buffer {
  let head = `Content-Disposition: form-data; name="${escapeName(name)}"`;
  if (file) {
    const mime = MIME.test(file.mime) ? file.mime : "application/octet-stream";
    // A trailing backslash would escape the closing quote.
    const filename = escapeName(file.filename).replace(/\\$/, "%5C");
    head += `; filename="${filename}"\r\nContent-Type: ${mime}`;
  }
  return Buffer.from(`${head}\r\n\r\n`);
}

const escapeName = (text: string): string =>
  text.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");

// Splices edits into the bytes of a client's form. The boundary and every part that no edit names
// stay unchanged.
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly replacement: readonly Buffer[];
}

const NONE: readonly Buffer[] = [];

export function applyMultipartEdits(
  raw: Buffer,
  layout: MultipartLayout,
  edits: ReadonlyMap<string, Opt<Field>>,
): Buffer {
  if (edits.size === 0) return raw;
  const changes: Splice[] = [];
  for (const [field, value] of edits) collectSplices(field, value, layout, changes);
  const all: Buffer[] = [];
  let at = 0;
  for (const { from, to, replacement } of changes.toSorted((a, b) => a.from - b.from)) {
    all.push(raw.subarray(at, from), ...replacement);
    at = to;
  }
  all.push(raw.subarray(at));
  return Buffer.concat(all);
}

/**
 * Collects the splices for one field. A single value replaces the existing part. Any other value is
 * written at the position of the field's first part.
 */
function collectSplices(
  field: string,
  value: Opt<Field>,
  layout: MultipartLayout,
  into: Splice[],
): void {
  const [first, ...others] = layout.partsByField.get(field) ?? [];
  const parts: EncodedPart[] = [];
  encodeField(field, value, parts);
  for (const part of parts) assertNoBoundary(part, layout.boundary);
  const [only] = parts;
  if (first && isText(first, field) && others.length === 0 && isScalar(value))
    return void into.push({
      from: first.contentStart,
      to: first.contentEnd,
      replacement: [only!.content],
    });
  const at = first?.start ?? layout.end;
  into.push({ from: at, to: first?.end ?? at, replacement: joinParts(parts, layout.boundary) });
  for (const { start, end } of others) into.push({ from: start, to: end, replacement: NONE });
}

const isText = ({ name, filename }: MultipartPart, field: string): boolean =>
  name === field && filename === undefined;
const isScalar = (value: Opt<Field>): boolean =>
  value !== undefined && value !== null && typeof value !== "object";
/** Throws if a part contains the boundary, which would end the part early. */
function assertNoBoundary({ headers, content }: EncodedPart, boundary: string): void {
  const mark = `--${boundary}`;
  if (headers.includes(mark) || content.includes(mark))
    fail("invalid", "The form boundary occurs in the content to be written to the form.", {
      code: "invalid_form",
    });
}
