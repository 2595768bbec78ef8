// Decodes a multipart form into a body. Text parts become strings, and files become spans of the
// received bytes. Names in brackets become the equivalent JSON structure, so that code that
// inspects bodies finds `images[][file_id]` where it finds `images: [{ file_id }]`.
import { createHash } from "node:crypto";
import { isUtf8 } from "node:buffer";
import { BOUNDS, boundMessage } from "../../lib/bounds.ts";
import { setOwnProperty } from "../../lib/set-own-property.ts";
import type { Body, FilePart, JsonObject } from "../../model/values.ts";
import {
  parseHeaderValue,
  parseMultipart,
  type MultipartFlaw,
  type MultipartPart,
} from "./multipart-parser.ts";

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
