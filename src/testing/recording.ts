import { readdirSync, readFileSync, existsSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bodyFormOf } from "../lib/media-type.ts";
import type { ModelEvent } from "../model/event.ts";
import type { Body, HeadersIn } from "../model/values.ts";
import type { ScriptedResponse } from "./upstream/scripted-response.ts";

/**
 * Content of a recording that a person has read: `expected.json`, written by hand. Members that are
 * not set are not compared.
 *
 *     { "text": "Hello", "usage": { "input": 12, "output": 2 }, "finish": "stop" }
 *     { "error": "rate_limited" }
 */
export interface ExpectedAnswer {
  /** Complete text of the response. */
  readonly text?: string;
  /** All usage counts that the provider reports. */
  readonly usage?: Readonly<Record<string, number>>;
  /** Finish reason. */
  readonly finish?: string;
  /** Kind of the error that the response is or ends in. */
  readonly error?: string;
}

/**
 * One recorded exchange, in a separate folder. `request.json` is the request. `upstream.http` is
 * the response: status line, headers, a blank line, then the raw body. `expected.json` is its
 * content, written by a person who has read it. `events.json` exists if a person has checked its
 * events. A file of a form is in `request.json` as `{ "filename", "mime", "base64" }`.
 */
export interface Recording {
  readonly name: string;
  readonly request: Body;
  readonly status: number;
  readonly headers: HeadersIn;
  readonly body: Buffer;
  readonly events: readonly ModelEvent[] | undefined;
  readonly expected?: ExpectedAnswer | undefined;
}

/** Returns all recordings in a folder, or a single recording if the folder is one. */
export function readRecordings(folder: URL | string): Recording[] {
  const path = typeof folder === "string" ? folder : fileURLToPath(folder);
  if (existsSync(join(path, "upstream.http"))) return [readRecording(path)];
  const found = readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(path, entry.name, "upstream.http")))
    .map((entry) => readRecording(join(path, entry.name)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (found.length === 0)
    throw new Error(`${path} is not a recording: file upstream.http not found.`);
  return found;
}

function readRecording(path: string): Recording {
  const events = join(path, "events.json");
  const expected = join(path, "expected.json");
  return {
    name: basename(path),
    request: replaceFiles(JSON.parse(readFileSync(join(path, "request.json"), "utf8"))),
    ...parseHttp(readFileSync(join(path, "upstream.http")), path),
    events: existsSync(events) ? JSON.parse(readFileSync(events, "utf8")) : undefined,
    expected: existsSync(expected) ? JSON.parse(readFileSync(expected, "utf8")) : undefined,
  };
}

function replaceFiles(fields: { readonly [field: string]: unknown }): Body {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const { filename, mime, base64 } = (value ?? {}) as Record<string, unknown>;
      return typeof base64 === "string"
        ? [field, { filename, mime, data: Buffer.from(base64, "base64") }]
        : [field, value];
    }),
  ) as Body;
}

/** People edit the headers, so either line ending is accepted. The body is kept unchanged. */
function parseHttp(bytes: Buffer, path: string): Pick<Recording, "status" | "headers" | "body"> {
  const lf = bytes.indexOf("\n\n");
  const crlf = bytes.indexOf("\r\n\r\n");
  const end = crlf >= 0 && (lf < 0 || crlf < lf) ? crlf : lf;
  if (end < 0) throw new Error(`${path}/upstream.http has no blank line after its headers.`);
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split(/\r?\n/);
  const status = Number(/^HTTP\/\S+ (\d{3})/.exec(first)?.[1]);
  if (!status)
    throw new Error(
      `${path}/upstream.http must begin with a status line, but begins with "${first}".`,
    );
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { status, headers, body: bytes.subarray(end + (end === crlf ? 4 : 2)) };
}

/**
 * Whether the response is a stream, determined in the same way as in the gateway: by the media type
 * or, if that is ambiguous, by the request.
 */
export function isStreamRecording({
  headers,
  request,
}: Pick<Recording, "headers" | "request">): boolean {
  const form = bodyFormOf(headers["content-type"] as string | undefined);
  return form === undefined ? request["stream"] === true : form === "stream";
}

/** Returns the response of a fake upstream that replays a recording. */
export function replayResponse(
  recording: Recording,
  more: ScriptedResponse = {},
): ScriptedResponse {
  const {
    "content-length": _length,
    "transfer-encoding": _encoding,
    ...headers
  } = recording.headers;
  return {
    status: recording.status,
    headers: headers as Record<string, string>,
    body: recording.body,
    framing: isStreamRecording(recording) ? "chunked" : "length",
    ...more,
  };
}
