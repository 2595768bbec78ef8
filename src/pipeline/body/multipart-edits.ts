// Splices edits into the bytes of a client's form. The boundary and every part that no edit names
// stay unchanged.
import { fail } from "../../model/error.ts";
import type { Field, Opt } from "../../model/values.ts";
import type { MultipartLayout } from "./multipart-body.ts";
import type { MultipartPart } from "./multipart-parser.ts";
import { joinParts, encodeField, type EncodedPart } from "./multipart-writer.ts";

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
