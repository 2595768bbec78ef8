// A form as a body: text parts are strings, files are spans of the bytes that came. Names in brackets are what they are in
// JSON, so that what looks at bodies finds `images[][file_id]` where it finds `images: [{ file_id }]`.
import { createHash } from "node:crypto";
import { isUtf8 } from "node:buffer";
import { BOUNDS, beyond } from "../../lib/bounds.ts";
import { put } from "../../lib/member.ts";
import type { Body, FilePart, JsonObject } from "../../model/values.ts";
import { typed } from "./head.ts";
import { split, type FormFlaw, type FormPart } from "./split.ts";

/** Where a form's fields stand in its bytes. */
export interface FormLayout {
  readonly boundary: string;
  /** By top-level field, in the client's order. */
  readonly fields: ReadonlyMap<string, readonly FormPart[]>;
  /** Where its last boundary begins. */
  readonly end: number;
}

export type FormBody =
  | {
      readonly body: Body;
      readonly layout: FormLayout;
      /** Some name has capitals or letters beyond ASCII: a parser that folds case could take it for another. */
      readonly odd: boolean;
      readonly flaw?: undefined;
    }
  | { readonly flaw: FormFlaw };

/** A file as it came. Its text is short, and never the same as that of a file with other bytes. */
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
type Members = { [name: string]: unknown };

const ODD = /[A-Z]|[^\x20-\x7e]/;
const bad = (code: string, message: string): { readonly flaw: FormFlaw } => ({
  flaw: { code, message },
});

/** The body that a form spells, or why it spells none. */
export function formBody(raw: Buffer, boundary: string): FormBody {
  const found = split(raw, boundary);
  if (found.flaw) return found;
  const body: Members = {};
  const fields = new Map<string, FormPart[]>();
  let odd = false;
  for (const part of found.parts) {
    odd ||= ODD.test(part.name);
    const [top, ...within] = pathOf(part.name);
    // The form itself is the first of them, as the braces around a JSON text are.
    if (within.length >= BOUNDS.depth.most) return bad(BOUNDS.depth.error[1], beyond("depth"));
    for (const name of [top!, ...within])
      if (Buffer.byteLength(name) > BOUNDS.name.most)
        return bad(BOUNDS.name.error[1], beyond("name"));
    if (part.filename !== undefined && (within.length > 1 || within[0]))
      return bad("invalid_form", `The file ${shown(part.name)} stands deeper than in a list.`);
    const value = valueOf(raw, part);
    if (value === undefined)
      return bad("invalid_utf8", `The part ${shown(part.name)} of the form is not UTF-8 text.`);
    if (!place(body, [top!, ...within], 0, value))
      return bad("duplicate_key", `The name ${shown(part.name)} stands twice in the form.`);
    const parts = fields.get(top!);
    if (parts) parts.push(part);
    else fields.set(top!, [part]);
  }
  return { body: body as Body, layout: { boundary, fields, end: found.end }, odd };
}

const LONGEST_NAME = 100;
const shown = (name: string): string =>
  JSON.stringify(name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name);

/** `a[b][]` is a, then b, then one more of a list. What is written otherwise is a name as it stands. */
export function pathOf(name: string): readonly string[] {
  const open = name.indexOf("[");
  if (open <= 0 || !/^(?:\[[^[\]]*\])+$/.test(name.slice(open))) return [name];
  return [name.slice(0, open), ...name.slice(open + 1, -1).split("][")];
}

const UTF8 = /^(?:utf-?8|us-ascii)$/i;

function valueOf(raw: Buffer, { filename, mime, from, to }: FormPart): Value | undefined {
  const content = raw.subarray(from, to);
  if (filename !== undefined)
    return new ReceivedFile(filename, mime ?? "application/octet-stream", content);
  const charset = mime === undefined ? undefined : typed(mime)?.parameters.get("charset");
  if ((charset !== undefined && !UTF8.test(charset)) || !isUtf8(content)) return undefined;
  return content.toString("utf8");
}

/**
 * False: something else stands there already. An object in a list is filled until a name comes that it has.
 */
function place(
  into: Members | unknown[],
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
    if (isContainer(latest) && place(latest, path, at + 1, value)) return true;
    const made = containerFor(path[at + 1]!);
    into.push(made);
    return place(made, path, at + 1, value);
  }
  if (name === "" && at > 0) return false;
  if (last) {
    if (Object.hasOwn(into, name)) return false;
    put(into, name, value);
    return true;
  }
  if (!Object.hasOwn(into, name)) put(into, name, containerFor(path[at + 1]!));
  const inside = into[name];
  return isContainer(inside) && place(inside, path, at + 1, value);
}

const containerFor = (name: string): Members | unknown[] => (name === "" ? [] : {});
const isContainer = (value: unknown): value is Members | unknown[] =>
  typeof value === "object" && value !== null && !(value instanceof ReceivedFile);
