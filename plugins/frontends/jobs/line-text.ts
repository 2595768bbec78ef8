// Splits inputs of batches into lines while they arrive, and finds members of a line without
// changing their text.
import { fail } from "tollgate/plugin";

/** Maximum size of a line in bytes. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;
const LF = 10;

/** A line of a file, without its line break. */
export interface TextLine {
  /** Number of the line, from 1. */
  readonly number: number;
  readonly bytes: Buffer;
}

/** Yields the lines of a file that are not blank. */
export async function* splitLines(
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<TextLine, void> {
  let number = 0;
  for await (const bytes of splitAllLines(content)) {
    number++;
    if (!isBlank(bytes)) yield { number, bytes };
  }
}

/** Yields all lines of a file. */
export async function* splitAllLines(
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer, void> {
  let pieces: Buffer[] = [];
  let size = 0;
  let number = 1;
  const add = (piece: Buffer) => {
    size += piece.length;
    if (size > MAX_LINE_BYTES)
      fail("invalid", `Line ${number} is longer than ${MAX_LINE_BYTES} bytes.`, {
        code: "batch_line_too_long",
      });
    pieces.push(piece);
  };
  const take = (): Buffer => {
    const line = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    [pieces, size] = [[], 0];
    number++;
    return line;
  };
  for await (const some of content) {
    const chunk = Buffer.from(some.buffer, some.byteOffset, some.byteLength);
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      add(chunk.subarray(from, at));
      from = at + 1;
      yield take();
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (size > 0) yield take();
}

/** Whether a line has only spaces, tabs, and carriage returns. */
const isBlank = (line: Buffer): boolean =>
  line.every((byte) => byte === 32 || byte === 9 || byte === 13);

const [QUOTE, BACKSLASH, OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST, COMMA] = [
  34, 92, 123, 125, 91, 93, 44,
];

/**
 * Returns the text of a member of a JSON object, as it was written. The text must be valid JSON. If
 * a member occurs several times, the last one counts, as in `JSON.parse`.
 */
export function memberText(object: Buffer, name: string): Buffer | undefined {
  const quoted = Buffer.from(JSON.stringify(name));
  let found: Buffer | undefined;
  let depth = 0;
  let nameStart = -1;
  let valueStart = -1;
  const endValue = (at: number) => {
    if (valueStart >= 0) found = object.subarray(valueStart, at);
    [nameStart, valueStart] = [-1, -1];
  };
  for (let at = 0; at < object.length; at++) {
    const byte = object[at];
    if (byte === QUOTE) {
      const end = endOfString(object, at);
      if (depth === 1 && nameStart < 0) {
        nameStart = at;
        const text = object.subarray(at, end);
        const isName = text.equals(quoted) || (text.includes(BACKSLASH) && parse(text) === name);
        if (isName) valueStart = object.indexOf(":", end) + 1;
      }
      at = end - 1;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      if (--depth === 0) endValue(at);
    } else if (byte === COMMA && depth === 1) endValue(at);
  }
  return found;
}

const parse = (text: Buffer): unknown => JSON.parse(text.toString());

/** Returns the position after a string that begins at `at`. */
function endOfString(text: Buffer, at: number): number {
  for (let end = at + 1; end < text.length; end++)
    if (text[end] === BACKSLASH) end++;
    else if (text[end] === QUOTE) return end + 1;
  return text.length;
}

/** Characters of a line in which an error is looked for. */
const MAX_SEARCHED = 256 * 1024;
const WORD = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const MARKS = "{}[],:";

/** The token that may follow in a JSON text. */
type Expected = "value" | "value or end" | "name" | "name or end" | "colon" | "next" | "nothing";

/**
 * Returns the position at which a text stops being JSON. Error messages of Node may lack it. Returns
 * undefined if the error is later than the part that is searched.
 */
export function findJsonError(whole: string): number | undefined {
  const text = whole.slice(0, MAX_SEARCHED);
  const at = searchJsonError(text);
  return at === text.length && text.length < whole.length ? undefined : at;
}

function searchJsonError(text: string): number {
  const open: string[] = [];
  let expected: Expected = "value";
  for (let at = 0; ;) {
    while (isSpace(text.charCodeAt(at))) at++;
    const token = tokenAt(text, at);
    if (!token) return token === null ? text.length : at;
    const next = nextExpected(expected, token.kind, open);
    if (next === undefined) return at;
    expected = next;
    at = token.end;
  }
}

const isSpace = (code: number): boolean =>
  code === 32 || (code >= 9 && code <= 13 && code !== 11 && code !== 12);

/** A token: a mark, a string, or a word, which is a number or a literal. */
interface Token {
  readonly kind: string;
  readonly end: number;
}

/** Returns the token at a position. `null`: the text ends within a string. */
function tokenAt(text: string, at: number): Token | null | undefined {
  const mark = text.charAt(at);
  if (mark !== "" && MARKS.includes(mark)) return { kind: mark, end: at + 1 };
  if (mark === '"') return stringAt(text, at);
  WORD.lastIndex = at;
  return WORD.test(text) ? { kind: "word", end: WORD.lastIndex } : undefined;
}

function stringAt(text: string, start: number): Token | null | undefined {
  for (let at = start + 1; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return { kind: "string", end: at + 1 };
    if (code < 32) return undefined;
    if (code !== BACKSLASH) at++;
    else {
      ESCAPE.lastIndex = at;
      if (!ESCAPE.test(text)) return undefined;
      at = ESCAPE.lastIndex;
    }
  }
  return null;
}

/** Returns the token that may follow. Undefined if the given token is not expected. */
function nextExpected(expected: Expected, kind: string, open: string[]): Expected | undefined {
  const afterValue = (): Expected => (open.length === 0 ? "nothing" : "next");
  const close = (): Expected => {
    open.pop();
    return afterValue();
  };
  const takesValue = expected === "value" || expected === "value or end";
  if (kind === "string" && (expected === "name" || expected === "name or end")) return "colon";
  if (kind === "string" || kind === "word") return takesValue ? afterValue() : undefined;
  switch (kind) {
    case "{":
    case "[":
      if (!takesValue) return undefined;
      open.push(kind);
      return kind === "{" ? "name or end" : "value or end";
    case "}":
      if (open.at(-1) !== "{") return undefined;
      return expected === "next" || expected === "name or end" ? close() : undefined;
    case "]":
      if (open.at(-1) !== "[") return undefined;
      return expected === "next" || expected === "value or end" ? close() : undefined;
    case ",":
      if (expected !== "next") return undefined;
      return open.at(-1) === "{" ? "name" : "value";
    default:
      return expected === "colon" ? "value" : undefined;
  }
}
