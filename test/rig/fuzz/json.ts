// Bodies: recorded requests with changes in their values, names, and text.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pick, type Operator } from "./input.ts";

const FIXTURES = join(import.meta.dirname, "../../fixtures/recordings");

export interface RecordedBody {
  readonly path: string;
  readonly text: string;
}

const DOORS: { readonly [folder: string]: { path: string; models: readonly string[] } } = {
  "chat-completions": {
    path: "/v1/chat/completions",
    models: ["chat/m", "google/gemini-m", "messages/m"],
  },
  messages: { path: "/v1/messages", models: ["messages/m", "chat/m", "responses/m"] },
  responses: { path: "/v1/responses", models: ["responses/m", "messages/m", "google/gemini-m"] },
  images: { path: "/v1/images/generations", models: ["chat/draw", "google/gemini-m-image"] },
};

/** Each recorded request, with each model of its endpoint. */
export const BODIES: readonly RecordedBody[] = Object.entries(DOORS).flatMap(
  ([folder, { path, models }]) =>
    readdirSync(join(FIXTURES, folder))
      .toSorted()
      .flatMap((name) => {
        const body = JSON.parse(readFileSync(join(FIXTURES, folder, name, "request.json"), "utf8"));
        return models.map((model) => ({ path, text: JSON.stringify({ ...body, model }) }));
      }),
);

const VALUES: readonly string[] = [
  "null",
  "true",
  "-1",
  "0",
  "1e308",
  "1e400",
  "-1e400",
  "1e-400",
  "9007199254740993",
  "0.1",
  "-0",
  '""',
  '"a"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\uffff"',
  '"__proto__"',
  '"model"',
  JSON.stringify("x".repeat(20_000)),
  "[]",
  "{}",
  "[[[]]]",
  '{"toString":1}',
  '{"__proto__":{"a":1}}',
  `[${Array<string>(400).fill('"a"').join(",")}]`,
  "[".repeat(40) + "]".repeat(40),
  "[".repeat(3_000) + "]".repeat(3_000),
  '{"a":'.repeat(70) + "1" + "}".repeat(70),
  '{"type":"text","text":"a"}',
  '{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}',
  '{"type":"tool_use","id":"a","name":"b","input":null}',
  '"data:image/png;base64,AAAA"',
  "1E5",
  "01",
  "+1",
  ".5",
  "NaN",
  "Infinity",
];
const NAMES: readonly string[] = [
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "toJSON",
  "then",
  "length",
  "type",
  "model",
  "mod\\u0065l",
  "Model",
  "stream",
  "n",
  "best_of",
  "$ref",
  "store",
  "tools",
  "messages",
  "input",
  "content",
  "role",
  "previous_response_id",
  "max_tokens",
  "x".repeat(300),
  "",
  "\\ud800",
];
const ODD: readonly string[] = [
  '"',
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\\",
  "\u0000",
  "\ufeff",
  "1e999",
  '"a":1,',
  "//",
  "/**/",
  "'",
  "\u2028",
  "\\u",
  "\\x41",
  "\u0080",
  "😀",
];

/**
 * Start of a value: after a colon, a bracket, or a comma. Strings are skipped, so a position is
 * never inside one.
 */
function places(text: string): number[] {
  const found: number[] = [];
  for (let i = 0, inString = false; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === ":" || c === "[" || c === ",") found.push(i + 1);
  }
  return found.length > 0 ? found : [0];
}

/** End of the value that starts here. */
function endOf(text: string, from: number): number {
  let depth = 0;
  for (let i = from, inString = false; i < text.length; i++) {
    const c = text[i]!;
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") {
      if (depth-- === 0) return i;
    } else if (c === "," && depth === 0) return i;
  }
  return text.length;
}

const spliced = (text: string, from: number, to: number, by: string) =>
  text.slice(0, from) + by + text.slice(to);
/** Changes one value of the text. */
const onValue =
  (change: (value: string, what: number, text: string) => string): Operator<string> =>
  (text, where, what) => {
    const from = pick(places(text), where);
    const to = endOf(text, from);
    return spliced(text, from, to, change(text.slice(from, to), what, text));
  };
const onText =
  (change: (at: number, text: string, what: number) => string): Operator<string> =>
  (text, where, what) =>
    change(where % (text.length + 1), text, what);

const anotherValue = (text: string, what: number) => {
  const from = pick(places(text), what);
  return text.slice(from, endOf(text, from));
};

export const OPERATORS: readonly Operator<string>[] = [
  onValue((_value, what) => pick(VALUES, what)),
  onValue((_value, what) => pick(VALUES, what)),
  onValue((_value, what, text) => anotherValue(text, what)),
  onValue((value, what) => `{"${pick(NAMES, what)}":${value}}`),
  onValue(
    (value, what) =>
      `[${Array<string>(what % 40)
        .fill(value)
        .join(",")}]`,
  ),
  onValue((value) => "[".repeat(66) + value + "]".repeat(66)),
  // An existing name, or a new one.
  (text, where, what) => {
    const objects = [...text.matchAll(/\{/g)].map(({ index }) => index + 1);
    if (objects.length === 0) return text;
    const known = [...text.matchAll(/"(\w+)":/g)].map(([, name]) => name!);
    const name =
      what % 2 === 0 && known.length > 0 ? pick(known, what >> 1) : pick(NAMES, what >> 1);
    const at = pick(objects, where);
    return spliced(text, at, at, `"${name}":${pick(VALUES, what >> 3)},`);
  },
  onText((at, text, what) => spliced(text, at, at, pick(ODD, what))),
  onText((at, text, what) => spliced(text, at, at + (what % 20), "")),
  onText((at, text, what) => spliced(text, at, at, text.slice(at, at + (what % 200)))),
  onText((at, text) => text.slice(0, at)),
  onText((at, text, what) => spliced(text, at, at + 1, String.fromCharCode(what % 256))),
];
