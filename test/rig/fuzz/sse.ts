// Responses of providers: recorded ones, with changes in their events, lines, JSON, and bytes.
import { join } from "node:path";
import { readRecordings } from "tollgate/testing";
import { isStreamRecording } from "../../../src/testing/recording.ts";
import { OPERATORS as ON_JSON } from "./json.ts";
import { pick, type Operator } from "./input.ts";

const FIXTURES = join(import.meta.dirname, "../../fixtures/recordings");

export interface RecordedAnswer {
  readonly into: "chat" | "messages" | "responses" | "google";
  readonly type: string;
  readonly stream: boolean;
  readonly body: Buffer;
}

const FOLDERS = {
  "chat-completions": "chat",
  messages: "messages",
  responses: "responses",
  gemini: "google",
} as const;

export const ANSWERS: readonly RecordedAnswer[] = Object.entries(FOLDERS).flatMap(
  ([folder, into]) =>
    readRecordings(join(FIXTURES, folder))
      .filter(({ status }) => status === 200)
      .map((recording) => ({
        into,
        type: String(recording.headers["content-type"]),
        stream: isStreamRecording(recording),
        body: recording.body,
      })),
);

// One character per byte, so that the conversion to text and back is lossless.
const text = (bytes: Buffer) => bytes.toString("latin1");
const bytes = (of: string) => Buffer.from(of, "latin1");
const EVENT = /(?:\r?\n){2}/;

const onEvents =
  (change: (events: string[], where: number, what: number) => string[]): Operator<Buffer> =>
  (of, where, what) =>
    bytes(change(text(of).split(EVENT), where, what).join("\n\n"));
const onLines =
  (change: (line: string, what: number) => string): Operator<Buffer> =>
  (of, where, what) => {
    const lines = text(of).split("\n");
    const at = where % lines.length;
    return bytes(lines.toSpliced(at, 1, change(lines[at]!, what)).join("\n"));
  };
const onBytes =
  (change: (at: number, of: Buffer, what: number) => Buffer): Operator<Buffer> =>
  (of, where, what) =>
    change(where % (of.length + 1), of, what);
const put = (of: Buffer, at: number, what: string | Buffer) =>
  Buffer.concat([of.subarray(0, at), Buffer.from(what as string), of.subarray(at)]);

const LINES: readonly string[] = [
  "data: [DONE]",
  "data:",
  "data",
  ": ping",
  "event: error",
  "event: message_stop",
  "id: 1",
  "retry: 1",
  "data: null",
  "data: []",
  "data: 1",
  'data: {"error":{"message":"x"}}',
  "\ufeffdata: {}",
  `data: ${"x".repeat(70_000)}`,
  `${"y".repeat(70_000)}: z`,
  "data : {}",
  "DATA: {}",
  "data:\t{}",
];
const ENDS: readonly string[] = ["\n", "\r", "\r\n", "\n\r", "\n\n\n", "\r\r"];
const BYTES: readonly Buffer[] = [
  Buffer.from([0]),
  Buffer.from([0xff]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from([0xf4, 0x90, 0x80, 0x80]),
  Buffer.from("\n\n"),
  Buffer.from("\r"),
  Buffer.from('"'),
  Buffer.from("{"),
];

/** The JSON of one line, changed like a body. */
const inJson =
  (operator: Operator<string>): Operator<Buffer> =>
  (of, where, what) => {
    const lines = text(of).split("\n");
    const full = lines.flatMap((line, i) => (line.includes("{") ? [i] : []));
    if (full.length === 0) return of;
    const at = pick(full, where);
    const from = lines[at]!.indexOf("{");
    const changed = lines[at]!.slice(0, from) + operator(lines[at]!.slice(from), where >> 3, what);
    return bytes(lines.toSpliced(at, 1, changed).join("\n"));
  };

export const OPERATORS: readonly Operator<Buffer>[] = [
  onEvents((events, where) => events.toSpliced(where % events.length, 1)),
  onEvents((events, where) =>
    events.toSpliced(where % events.length, 0, events[where % events.length]!),
  ),
  onEvents((events, where, what) => events.toSpliced(where % events.length, 0, pick(events, what))),
  onEvents((events, where, what) => events.toSpliced(where % events.length, 1, pick(events, what))),
  onEvents((events, where) => events.slice(0, where % (events.length + 1))),
  onEvents((events, where, what) =>
    events.toSpliced(
      where % events.length,
      0,
      ...Array<string>(what % 300).fill(pick(events, what)),
    ),
  ),
  onLines((line, what) => `${pick(LINES, what)}\n${line}`),
  onLines((_line, what) => pick(LINES, what)),
  onLines((line, what) => line + pick(ENDS, what)),
  (of, _where, what) => bytes(text(of).replaceAll(/\r?\n/g, pick(ENDS, what))),
  onBytes((at, of, what) => put(of, at, pick(BYTES, what))),
  onBytes((at, of, what) => Buffer.concat([of.subarray(0, at), of.subarray(at + (what % 50))])),
  onBytes((at, of) => of.subarray(0, at)),
  onBytes((at, of, what) => {
    const changed = Buffer.from(of);
    if (at < changed.length) changed[at] = changed[at]! ^ (1 << (what % 8));
    return changed;
  }),
  ...ON_JSON.map(inJson),
];
