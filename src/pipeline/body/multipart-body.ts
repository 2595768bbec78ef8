// Decodes a multipart form into a body. Text parts become strings, and files become spans of the
// received bytes. Names in brackets become the equivalent JSON structure, so that code that
// inspects bodies finds `images[][file_id]` where it finds `images: [{ file_id }]`.
import { createHash, randomBytes } from "node:crypto";
import { isUtf8 } from "node:buffer";
import { BOUNDS, boundMessage } from "../../lib/bounds.ts";
import { setOwnProperty } from "../../lib/set-own-property.ts";
import {
  type Body,
  type FilePart,
  type JsonObject,
  isFilePart,
  type Field,
  type Json,
  type Opt,
} from "../../model/values.ts";
import {
  parseHeaderValue,
  parseMultipart,
  type MultipartFlaw,
  type MultipartPart,
} from "./multipart-parser.ts";
import { fail } from "../../model/error.ts";

/** Positions of a form's fields in its bytes. */
export interface MultipartLayout {
  readonly boundary: string;
  /** Parts by top-level field, in the client's order. */
  readonly partsByField: ReadonlyMap<string, readonly MultipartPart[]>;
  /** Offset of the closing boundary. */
  readonly end: number;
}

export type MultipartBody =
  | {
      readonly body: Body;
      readonly layout: MultipartLayout;
      /**
       * Whether a name contains capital letters or letters beyond ASCII. A case-insensitive parser
       * could confuse such a name with another one.
       */
      readonly hasCaseVariants: boolean;
      readonly flaw?: undefined;
    }
  | { readonly flaw: MultipartFlaw };

/**
 * A file as received. Its JSON form is a short text that differs for files with different bytes.
 */
class ReceivedFile implements FilePart {
  readonly filename: string;
  readonly mime: string;
  readonly data: Buffer;

  constructor(filename: string, mime: string, data: Buffer) {
    this.filename = filename;
    this.mime = mime;
    this.data = data;
  }

  toJSON(): JsonObject {
    const sha256 = createHash("sha256").update(this.data).digest("hex");
    return { filename: this.filename, mime: this.mime, sha256 };
  }
}

type Value = string | FilePart;
type JsonMembers = { [name: string]: unknown };

const UPPERCASE_OR_NON_ASCII = /[A-Z]|[^\x20-\x7e]/;
const createFlaw = (code: string, message: string): { readonly flaw: MultipartFlaw } => ({
  flaw: { code, message },
});

/** Decodes a form into a body, or returns the flaw that prevents it. */
export function parseMultipartBody(raw: Buffer, boundary: string): MultipartBody {
  const found = parseMultipart(raw, boundary);
  if (found.flaw) return found;
  const body: JsonMembers = {};
  const fields = new Map<string, MultipartPart[]>();
  let hasCaseVariants = false;
  for (const part of found.parts) {
    hasCaseVariants ||= UPPERCASE_OR_NON_ASCII.test(part.name);
    const [top, ...nested] = parseFieldPath(part.name);
    // The form itself is the first level, like the outer braces of a JSON text.
    if (nested.length >= BOUNDS.depth.max)
      return createFlaw(BOUNDS.depth.error[1], boundMessage("depth"));
    for (const name of [top!, ...nested])
      if (Buffer.byteLength(name) > BOUNDS.name.max)
        return createFlaw(BOUNDS.name.error[1], boundMessage("name"));
    if (part.filename !== undefined && (nested.length > 1 || nested[0]))
      return createFlaw(
        "invalid_form",
        `The file ${quoteName(part.name)} is nested too deeply. Files can be nested in at most one list.`,
      );
    const value = decodePart(raw, part);
    if (value === undefined)
      return createFlaw(
        "invalid_utf8",
        `The form part ${quoteName(part.name)} is not valid UTF-8 text.`,
      );
    if (!insertAt(body, [top!, ...nested], 0, value))
      return createFlaw(
        "duplicate_key",
        `The form contains the name ${quoteName(part.name)} twice.`,
      );
    const parts = fields.get(top!);
    if (parts) parts.push(part);
    else fields.set(top!, [part]);
  }
  return {
    body: body as Body,
    layout: { boundary, partsByField: fields, end: found.end },
    hasCaseVariants,
  };
}

const MAX_SHOWN_NAME = 100;
const quoteName = (name: string): string =>
  JSON.stringify(name.length > MAX_SHOWN_NAME ? `${name.slice(0, MAX_SHOWN_NAME)}…` : name);

/**
 * Splits a field name into a path: `a[b][]` is the member `b` of `a`, then a new element of its
 * list. A name in any other form is used unchanged.
 */
export function parseFieldPath(name: string): readonly string[] {
  const open = name.indexOf("[");
  if (open <= 0 || !/^(?:\[[^[\]]*\])+$/.test(name.slice(open))) return [name];
  return [name.slice(0, open), ...name.slice(open + 1, -1).split("][")];
}

const UTF8_CHARSET = /^(?:utf-?8|us-ascii)$/i;

function decodePart(
  raw: Buffer,
  { filename, mime, contentStart, contentEnd }: MultipartPart,
): Value | undefined {
  const content = raw.subarray(contentStart, contentEnd);
  if (filename !== undefined)
    return new ReceivedFile(filename, mime ?? "application/octet-stream", content);
  const charset =
    mime === undefined ? undefined : parseHeaderValue(mime)?.parameters.get("charset");
  if ((charset !== undefined && !UTF8_CHARSET.test(charset)) || !isUtf8(content)) return undefined;
  return content.toString("utf8");
}

/**
 * Inserts a value at the path. Returns false if the place is already taken. Members are added to
 * the last object of a list until a name occurs that this object already has.
 */
function insertAt(
  into: JsonMembers | unknown[],
  path: readonly string[],
  at: number,
  value: Value,
): boolean {
  const last = at === path.length - 1;
  const name = path[at]!;
  if (Array.isArray(into)) {
    if (name !== "") return false;
    if (last) return into.push(value) > 0;
    const latest: unknown = into.at(-1);
    if (isContainer(latest) && insertAt(latest, path, at + 1, value)) return true;
    const made = createContainer(path[at + 1]!);
    into.push(made);
    return insertAt(made, path, at + 1, value);
  }
  if (name === "" && at > 0) return false;
  if (last) {
    if (Object.hasOwn(into, name)) return false;
    setOwnProperty(into, name, value);
    return true;
  }
  if (!Object.hasOwn(into, name)) setOwnProperty(into, name, createContainer(path[at + 1]!));
  const inside = into[name];
  return isContainer(inside) && insertAt(inside, path, at + 1, value);
}

const createContainer = (name: string): JsonMembers | unknown[] => (name === "" ? [] : {});
const isContainer = (value: unknown): value is JsonMembers | unknown[] =>
  typeof value === "object" && value !== null && !(value instanceof ReceivedFile);

// Encodes a body as a multipart form: bodies that a codec produced, and parts that replace a
// client's own parts.

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
