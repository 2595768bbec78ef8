// Where the parts of a form stand in its bytes. Nothing is copied. The boundary is a line of its own and stands nowhere else:
// a reader that is less strict than this one finds the same parts.
import { isUtf8 } from "node:buffer";
import { BOUNDS, beyond, type BoundName } from "../../lib/bounds.ts";
import { typed } from "./head.ts";

export interface FormPart {
  /** Escapes undone once: `images[][file_id]`. */
  readonly name: string;
  /** A part that has one is a file. */
  readonly filename: string | undefined;
  readonly mime: string | undefined;
  /** From its boundary to the next one. */
  readonly start: number;
  readonly end: number;
  /** Its content. */
  readonly from: number;
  readonly to: number;
}

/** Why a form cannot be trusted to mean one thing. */
export interface FormFlaw {
  readonly code: string;
  readonly message: string;
  readonly bound?: BoundName;
}

export type Split =
  | { readonly parts: readonly FormPart[]; readonly end: number; readonly flaw?: undefined }
  | { readonly flaw: FormFlaw };

const CRLF = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");
const CLOSE = Buffer.from("--");
const MOST_PARTS = BOUNDS.formParts.most;
const MOST_HEAD = BOUNDS.formHead.most;

const flaw = (message: string, code = "invalid_form"): { readonly flaw: FormFlaw } => ({
  flaw: { code, message },
});
const past = (bound: "formParts" | "formHead"): { readonly flaw: FormFlaw } => ({
  flaw: { code: BOUNDS[bound].error[1], message: beyond(bound), bound },
});

const TORN = "The form ends before its last boundary.";
const INSIDE = "The boundary of the form stands inside of one of its parts.";

export function split(raw: Buffer, boundary: string): Split {
  const mark = Buffer.from(`--${boundary}`, "latin1");
  const parts: FormPart[] = [];
  // Some clients begin with the line break of a boundary that is not there.
  let start = stands(raw, 0, CRLF) ? CRLF.length : 0;
  if (!stands(raw, start, mark))
    return flaw(raw.indexOf(mark) < 0 ? TORN : "The form begins with something else.");
  for (;;) {
    const at = start + mark.length;
    if (stands(raw, at, CLOSE)) {
      const rest = at + CLOSE.length;
      const over = raw.length === rest || (raw.length === rest + 2 && stands(raw, rest, CRLF));
      return over ? { parts, end: start } : flaw("Something stands behind the end of the form.");
    }
    if (!stands(raw, at, CRLF)) return flaw(raw.length - at < 2 ? TORN : INSIDE);
    if (parts.length === MOST_PARTS) return past("formParts");
    const next = raw.indexOf(mark, at);
    if (next < 0) return flaw(TORN);
    const part = partOf(raw, start, at + CRLF.length, next);
    if ("flaw" in part) return part;
    parts.push(part);
    start = next;
  }
}

const stands = (raw: Buffer, at: number, what: Buffer): boolean =>
  raw.length >= at + what.length && raw.compare(what, 0, what.length, at, at + what.length) === 0;

function partOf(
  raw: Buffer,
  start: number,
  head: number,
  next: number,
): FormPart | { readonly flaw: FormFlaw } {
  // The line break before a boundary is the boundary's.
  const to = next - CRLF.length;
  if (to < head || !stands(raw, to, CRLF)) return flaw(INSIDE);
  // A head that is empty ends where it begins.
  const length = raw.subarray(head - CRLF.length, Math.min(to, head + MOST_HEAD)).indexOf(HEAD_END);
  if (length < 0)
    return to - head > MOST_HEAD ? past("formHead") : flaw("A part of the form has no content.");
  const from = head - CRLF.length + length + HEAD_END.length;
  const lines = raw.subarray(head, Math.max(head, from - HEAD_END.length));
  const said = isUtf8(lines) ? headOf(lines.toString()) : undefined;
  return said
    ? { ...said, start, end: next, from, to }
    : flaw("A part of the form has a head that could be read in two ways.");
}

type Head = Pick<FormPart, "name" | "filename" | "mime">;

/** Each line once; what would have the content decoded before it is read is refused. */
function headOf(text: string): Head | undefined {
  let disposition: ReturnType<typeof typed>;
  let mime: string | undefined;
  const seen = new Set<string>();
  for (const line of text.split("\r\n")) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^\r\n\0]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const known = name.toLowerCase();
    if (seen.has(known)) return undefined;
    seen.add(known);
    if (known === "content-disposition") disposition = typed(value);
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
  const filename = parameters.get("filename") ?? (encoded && extended(encoded));
  if (encoded !== undefined && filename === undefined) return undefined;
  return { name: unescaped(name), filename: filename && unescaped(filename), mime };
}

/** The three that browsers escape, and the quote as other clients do. */
const unescaped = (text: string): string =>
  text.replaceAll(/%22|%0D|%0A|\\"/gi, (escape) =>
    escape === "%0D" || escape === "%0d" ? "\r" : escape === "%0A" || escape === "%0a" ? "\n" : '"',
  );

/** `UTF-8''na%C3%AFve.wav` */
function extended(text: string): string | undefined {
  const [, encoded] = /^utf-8'[\w-]*'(.*)$/i.exec(text) ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
