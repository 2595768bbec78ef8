// How Google's SDKs read a stream and decide whether a turn stays in a chat's history: their rules,
// line by line from their sources, because several version lines are in use.
import assert from "node:assert/strict";

interface Chunk {
  readonly candidates?: readonly {
    readonly content?: { readonly role?: string; readonly parts?: readonly object[] };
    readonly finishReason?: string;
  }[];
}

export interface GoogleSdk {
  readonly name: string;
  /** Every chunk that it decodes from a stream. Throws where the SDK does. */
  read(stream: string): Chunk[];
  /** Whether it keeps the content of a chunk. */
  keeps(chunk: Chunk): boolean;
}

const json = (text: string): Chunk => JSON.parse(text) as Chunk;

/** `^data: (.*)\n\n` from the start of the rest: nothing else may be between two events. */
function byPattern(stream: string): Chunk[] {
  const chunks: Chunk[] = [];
  let rest = stream;
  for (;;) {
    const match = /^data: (.*)(?:\n\n|\r\r|\r\n\r\n)/.exec(rest);
    if (!match) break;
    chunks.push(json(match[1]!));
    rest = rest.slice(match[0].length);
  }
  assert.equal(rest.trim(), "", "Incomplete JSON segment at the end");
  return chunks;
}

/** Complete events between blank lines, skipping those without data. */
function byEvent(stream: string): Chunk[] {
  const events = stream.split(/\n\n|\r\r|\r\n\r\n/);
  assert.equal(events.pop()!.trim(), "", "Incomplete JSON segment at the end");
  return events
    .map((event) => event.trim())
    .filter((event) => event.startsWith("data:"))
    .map((event) => json(event.slice(5).trim()));
}

/**
 * Line by line, where a line without `data: ` is JSON too. Python's `splitlines` knows many line
 * ends.
 */
const byLine =
  (ends: RegExp) =>
  (stream: string): Chunk[] =>
    stream
      .split(ends)
      .filter((line) => line !== "")
      .map((line) => json(line.startsWith("data: ") ? line.slice(6) : line));

/** Go: any line without data is an error. */
const byField = (stream: string): Chunk[] =>
  stream
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      assert.match(line, /^data:/, "invalid stream chunk");
      return json(line.slice(5));
    });

const hasParts = (chunk: Chunk): boolean => {
  const parts = chunk.candidates?.[0]?.content?.parts ?? [];
  return parts.length > 0 && parts.every((part) => Object.keys(part).length > 0);
};
const hasWords = (chunk: Chunk): boolean =>
  hasParts(chunk) &&
  chunk.candidates![0]!.content!.parts!.every((part) => (part as { text?: string }).text !== "");

// oxlint-disable-next-line no-control-regex
const SPLITLINES = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

export const GOOGLE_SDKS: readonly GoogleSdk[] = [
  { name: "@google/generative-ai 0.24", read: byPattern, keeps: hasWords },
  { name: "@google/genai 1.0 to 1.10", read: byPattern, keeps: hasWords },
  { name: "@google/genai 1.20 to 1.40", read: byPattern, keeps: hasParts },
  { name: "@google/genai 2 and 3", read: byEvent, keeps: hasParts },
  { name: "google-genai 1.10 to 1.40", read: byLine(SPLITLINES), keeps: hasWords },
  { name: "google-genai 1.60 to 2", read: byLine(SPLITLINES), keeps: hasParts },
  { name: "google-genai 3", read: byLine(/\r\n|\n|\r/), keeps: hasParts },
  { name: "google.golang.org/genai 1", read: byField, keeps: hasParts },
];

/** Content of a streamed turn in this SDK's chat, as one text. Undefined: it drops the turn. */
export function kept({ read, keeps }: GoogleSdk, stream: string): string | undefined {
  const chunks = read(stream);
  const ended = chunks.some((chunk) => chunk.candidates?.[0]?.finishReason !== undefined);
  const contents = chunks.map((chunk) => chunk.candidates?.[0]?.content);
  if (!ended || !chunks.every(keeps) || contents.some((one) => one?.role !== "model"))
    return undefined;
  const parts = contents.flatMap((one) => one!.parts!) as { text?: string; thought?: boolean }[];
  return parts.map(({ text, thought }) => (thought ? "" : (text ?? ""))).join("");
}
