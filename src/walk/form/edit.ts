// Edits of a client's form, spliced into its own bytes: its boundary stays, and so does every part that no edit names.
import { fail } from "../../model/error.ts";
import type { Field, Opt } from "../../model/values.ts";
import type { FormLayout } from "./body.ts";
import type { FormPart } from "./split.ts";
import { between, partsOf, type WrittenPart } from "./write.ts";

interface Change {
  readonly from: number;
  readonly to: number;
  readonly pieces: readonly Buffer[];
}

const NONE: readonly Buffer[] = [];

export function edited(
  raw: Buffer,
  layout: FormLayout,
  edits: ReadonlyMap<string, Opt<Field>>,
): Buffer {
  if (edits.size === 0) return raw;
  const changes: Change[] = [];
  for (const [field, value] of edits) change(field, value, layout, changes);
  const all: Buffer[] = [];
  let at = 0;
  for (const { from, to, pieces } of changes.toSorted((a, b) => a.from - b.from)) {
    all.push(raw.subarray(at, from), ...pieces);
    at = to;
  }
  all.push(raw.subarray(at));
  return Buffer.concat(all);
}

/** One value takes another's place; whatever else a field becomes is written where its first part stood. */
function change(field: string, value: Opt<Field>, layout: FormLayout, into: Change[]): void {
  const [first, ...others] = layout.fields.get(field) ?? [];
  const parts: WrittenPart[] = [];
  partsOf(field, value, parts);
  for (const part of parts) whole(part, layout.boundary);
  const [only] = parts;
  if (first && isText(first, field) && others.length === 0 && isPlain(value))
    return void into.push({ from: first.from, to: first.to, pieces: [only!.content] });
  const at = first?.start ?? layout.end;
  into.push({ from: at, to: first?.end ?? at, pieces: between(parts, layout.boundary) });
  for (const { start, end } of others) into.push({ from: start, to: end, pieces: NONE });
}

const isText = ({ name, filename }: FormPart, field: string): boolean =>
  name === field && filename === undefined;
const isPlain = (value: Opt<Field>): boolean =>
  value !== undefined && value !== null && typeof value !== "object";

/** A boundary inside of a part would be the end of it. */
function whole({ head, content }: WrittenPart, boundary: string): void {
  const mark = `--${boundary}`;
  if (head.includes(mark) || content.includes(mark))
    fail("invalid", "The boundary of the form stands in what would be written into it.", {
      code: "invalid_form",
    });
}
