// What a body says: one meaning only, or it is refused.
import { isAscii, isUtf8 } from "node:buffer";
import { scan, Scanner, type Scan, type Span } from "../../lib/json.ts";
import { fail } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { Body } from "../../model/values.ts";
import { LARGE, turn } from "../bounds/turn.ts";
import { formBody, type FormLayout } from "../form/body.ts";
import { boundaryOf, isForm } from "../form/head.ts";

/** What a look over a large body does at once. */
const STEP = 4 * 1024 * 1024;

export interface ParsedBody {
  body: Body;
  /** Where the members of a JSON text stand. */
  spans: ReadonlyMap<string, Span> | null;
  /** Where the fields of a form stand. */
  form: FormLayout | undefined;
  /** Some name could be another one to a parser that folds case. */
  odd: boolean;
}

/** Of a method that has none. */
export const NO_BODY: ParsedBody = { body: {}, spans: null, form: undefined, odd: false };

const bad = (message: string, code: string): never => fail("invalid", message, { code });

/** A large one in several turns: the others do not wait for all of it. `type`: as the client announced it. */
export function understand(
  raw: Buffer,
  type: string,
  values: number,
): ParsedBody | Promise<ParsedBody> {
  if (isForm(type)) return form(raw, type);
  if (raw.length === 0) bad("The body is empty.", "invalid_json");
  const ascii = isAscii(raw);
  if (!ascii && !isUtf8(raw)) bad("The body is not valid UTF-8.", "invalid_utf8");
  const written = () => raw.toString(ascii ? "latin1" : "utf8");
  if (raw.length >= LARGE) return slowly(raw, values, written);
  const seen = bounded(scan(raw, values), values);
  return parsed(written(), seen);
}

async function slowly(raw: Buffer, values: number, written: () => string): Promise<ParsedBody> {
  const scanner = new Scanner(raw, values);
  let seen: Scan | undefined;
  while (!(seen = scanner.look(STEP))) await turn();
  bounded(seen, values);
  await turn();
  const text = written();
  await turn();
  const understood = parsed(text, seen);
  await turn();
  return understood;
}

/** What is too much is not parsed. */
function bounded(seen: Scan, values: number): Scan {
  const bound = seen.flaw?.bound;
  if (bound) exceed(bound, bound === "values" ? values : undefined);
  return seen;
}

function parsed(text: string, seen: Scan): ParsedBody {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const [, at] = /position (\d+)/.exec((error as Error).message) ?? [];
    bad(`The body is not JSON${at ? `: see character ${at}` : ""}.`, "invalid_json");
  }
  if (seen.flaw) return bad(seen.flaw.message, seen.flaw.code);
  return { body: body as Body, spans: seen.spans, form: undefined, odd: seen.odd };
}

function form(raw: Buffer, type: string): ParsedBody {
  const boundary =
    boundaryOf(type) ??
    bad("The Content-Type of a form needs one boundary that a form can have.", "invalid_form");
  const seen = formBody(raw, boundary);
  if (!seen.flaw) return { body: seen.body, spans: null, form: seen.layout, odd: seen.odd };
  if (seen.flaw.bound) exceed(seen.flaw.bound);
  return bad(seen.flaw.message, seen.flaw.code);
}
