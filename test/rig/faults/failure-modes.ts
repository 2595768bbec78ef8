// The failures of providers and of the connections to them, with their expected outcomes. The rig tests the gateway with this table,
// and `.build/reference/provider-failures.ts` publishes it.
import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import {
  htmlResponse,
  jsonResponse,
  type ScriptedResponse,
  type Truncation,
} from "tollgate/testing";
import { spokenError } from "./errors.ts";
import type { Chance } from "../rig.ts";
import type { GoodAnswer } from "./good-responses.ts";
import { FRONTENDS, type Road } from "./request-paths.ts";

/** State of the call's row in the ledger. exact: the provider's counts. */
export type RowKind = "void" | "estimated" | "exact";

/**
 * served: complete. passed: an invalid response as received. broken: content, then an error in its
 * protocol. Otherwise a status with the error's code. `of`: only for these.
 */
export type Outcome = { readonly row: RowKind; readonly of?: Group } & (
  | { readonly client: "served" | "passed" | "broken" }
  | { readonly client: number; readonly code: string }
);

const kind = ({ from }: Road) => FRONTENDS[from].kind;
/** Paths on which a failure may have its own outcome. */
export const GROUPS = {
  images: (road) => kind(road) === "image",
  /** Its bytes state neither their type nor their end. */
  speech: (road) => kind(road) === "speech" && !road.stream,
  "streamed speech": (road) => kind(road) === "speech" && road.stream,
  "speech, reranking, moderation": (road) =>
    ["speech", "rerank", "moderation"].includes(kind(road)),
  "Gemini embeddings": ({ into }) => into === "gemini-vectors",
} as const satisfies { readonly [group: string]: (road: Road) => boolean };
export type Group = keyof typeof GROUPS;

/** Address of a provider with this failure. */
export const PLACES = [
  "plain",
  "nowhere",
  "silent",
  "flips",
  "rebound",
  "closed",
  "hole",
  "tls",
  "expired",
  "stranger",
  "selfsigned",
  "alpn",
  "h2",
  "stalled",
] as const;
export type Place = (typeof PLACES)[number];

export interface Fault {
  readonly name: string;
  /** Possible outcomes. The first that matches is the usual one. */
  readonly whole: readonly Outcome[];
  readonly stream: readonly Outcome[];
  readonly place?: Place;
  /** Waits for one of the limits below. */
  readonly waits?: keyof typeof LIMITS;
  /** Large, so one at a time. */
  readonly heavy?: true;
  /** Replacement for a good response. */
  readonly answer?: (good: GoodAnswer, chance: Chance) => ScriptedResponse;
  /** The provider reports no counts. */
  readonly uncounted?: true;
}

/** In gateway.yaml, in milliseconds. */
export const LIMITS = { connect: 1_500, first_byte: 4_000, idle: 2_000, total: 6_000 } as const;

const served = (row: RowKind): Outcome => ({ client: "served", row });
const refused = (client: number, code: string, row: RowKind): Outcome => ({ client, code, row });
const BROKEN: Outcome = { client: "broken", row: "estimated" };

const both = (...outcomes: readonly Outcome[]) => ({ whole: outcomes, stream: outcomes });
/** Google reports no counts for them. */
const UNCOUNTED: Outcome = { ...served("estimated"), of: "Gemini embeddings" };
const FINE = both(served("exact"), UNCOUNTED);
const HEARD: Outcome = { client: "passed", row: "exact", of: "speech" };
const HEARD_BROKEN: Outcome = { client: "broken", row: "estimated", of: "speech" };
const IN_BASE64: Outcome = { ...served("exact"), of: "streamed speech" };
const HEARD_WHOLE: Outcome = { ...served("exact"), of: "speech" };
/** An unreadable response. The code states the reason. */
const UNREADABLE = refused(502, "*", "estimated");
/** Unchanged, because nothing in it needed decoding. */
const PASSED: Outcome = { client: "passed", row: "exact" };
const LOST = refused(502, "upstream_disconnected", "estimated");

const at = (place: Place, name: string, outcome: Outcome, waits?: keyof typeof LIMITS): Fault => ({
  name,
  place,
  ...both(outcome),
  ...(waits && { waits }),
});

const good = ({ type, pieces, stream, bytes }: GoodAnswer): ScriptedResponse => ({
  headers: { "content-type": type },
  body: stream ? pieces : bytes,
  framing: stream ? "chunked" : "length",
});
const head = ({ type }: GoodAnswer, ...lines: readonly string[]) =>
  ["HTTP/1.1 200 OK", `content-type: ${type}`, ...lines, "", ""].join("\r\n");
const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);

/** Between two events before the finish, or anywhere in a non-streaming response. */
const boundary = ({ stream, pieces, finish, bytes }: GoodAnswer, chance: Chance): number =>
  stream
    ? pieces.slice(0, 1 + chance.below(finish)).reduce((sum, piece) => sum + piece.length, 0)
    : 1 + chance.below(bytes.length - 2);
const cutAt =
  (how: Truncation["how"], inside = 0) =>
  (of: GoodAnswer, chance: Chance): ScriptedResponse => ({
    ...good(of),
    framing: "chunked",
    truncation: { after: boundary(of, chance) + (of.stream ? inside : 0), how },
  });
const LINE = Buffer.alloc(64 * 1024, "x");
const replaced = (of: GoodAnswer, from: RegExp, to: string): GoodAnswer => {
  const change = (bytes: Buffer) =>
    Buffer.from(bytes.toString("latin1").replace(from, to), "latin1");
  return { ...of, pieces: of.pieces.map(change), bytes: change(of.bytes) };
};
/** Marks of a response: a word, an image, a number. */
const MARK = /Hello|iVBOR|0\.015625/g;
const POISON = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nPOISON";
const raw = (...pieces: readonly (string | Buffer)[]): ScriptedResponse => ({
  raw: pieces.map((piece) => Buffer.from(piece as string)),
});
const failing =
  (status: number, headers: Record<string, string> = {}) =>
  (of: GoodAnswer) => ({
    ...jsonResponse(spokenError(of.into, status), status),
    headers: { "content-type": "application/json", ...headers },
  });
const COUNT = /"(prompt_tokens|input_tokens|promptTokenCount|search_units)":\d+/g;
const counting = (to: string) => (of: GoodAnswer) => good(replaced(of, COUNT, `"$1":${to}`));
const half = ({ bytes }: GoodAnswer) => Math.floor(bytes.length / 2);

/** Images are counted on arrival, so the provider's own count is not needed. */
const GUESSED = both(
  served("estimated"),
  { ...served("exact"), of: "images" },
  { ...served("exact"), of: "speech, reranking, moderation" },
);

export const FAULTS: readonly Fault[] = [
  { name: "no failure (control)", ...FINE, answer: good },
  at("nowhere", "DNS: unknown host name (NXDOMAIN)", refused(502, "connect_failed", "void")),
  at("silent", "DNS: no response", refused(504, "connect_timeout", "void"), "connect"),
  {
    name: "DNS: another address for each query",
    place: "flips",
    ...FINE,
    answer: good,
  },
  at(
    "rebound",
    "DNS: address of a cloud metadata service",
    refused(502, "address_refused", "void"),
  ),
  at("closed", "connection refused", refused(502, "connect_failed", "void")),
  at("hole", "connection never accepted", refused(504, "connect_timeout", "void"), "connect"),
  { name: "TLS: no failure (control)", place: "tls", ...FINE, answer: good },
  at("expired", "TLS: expired certificate", refused(502, "tls_failed", "void")),
  at("stranger", "TLS: certificate for another name", refused(502, "tls_failed", "void")),
  at("selfsigned", "TLS: self-signed certificate", refused(502, "tls_failed", "void")),
  at("alpn", "TLS: no common protocol (ALPN)", refused(502, "tls_failed", "void")),
  at("h2", "TLS: HTTP/2 without negotiation", refused(502, "bad_http", "estimated")),
  at("stalled", "TLS: handshake stalls", refused(504, "connect_timeout", "void"), "connect"),
  ...(["reset", "close"] as const).map((how): Fault => ({
    name: `${how === "reset" ? "RST" : "FIN"} before the headers`,
    ...both(LOST),
    answer: () => ({ truncation: { after: "nothing", how } }),
  })),
  {
    name: "headers sent byte by byte",
    waits: "first_byte",
    ...both(refused(504, "upstream_timeout", "estimated")),
    answer: (of) => ({
      ...raw(head(of, `x-long: ${"x".repeat(200)}`)),
      chunks: "bytes",
      chunkDelayMs: 40,
    }),
  },
  {
    name: "header of 70 KB",
    ...both(refused(502, "bad_http", "estimated")),
    answer: (of) => ({
      ...good(of),
      headers: { "content-type": of.type, "x-large": "x".repeat(70 * 1024) },
    }),
  },
  {
    name: "invalid status line",
    ...both(refused(502, "bad_http", "estimated")),
    answer: (of, chance) =>
      raw(
        head(of).replace(
          "HTTP/1.1 200",
          chance.one(["HTP/1.1 200", "HTTP/1.1 abc", "200", "\0\0\0\0 200"]),
        ),
        of.bytes,
      ),
  },
  {
    name: "unrequested 100 Continue",
    ...both(refused(502, "bad_http", "estimated")),
    answer: (of) => ({ ...good(of), interimStatuses: [100] }),
  },
  { name: "103 Early Hints", ...FINE, answer: (of) => ({ ...good(of), interimStatuses: [103] }) },
  {
    name: "204 with a body",
    ...both(UNREADABLE),
    answer: (of) =>
      raw(
        head(of, `content-length: ${of.bytes.length}`).replace("200 OK", "204 No Content"),
        of.bytes,
      ),
  },
  {
    name: "304 with a body",
    ...both(refused(502, "upstream_redirect", "void")),
    answer: (of) =>
      raw(
        head(of, `content-length: ${of.bytes.length}`).replace("200 OK", "304 Not Modified"),
        of.bytes,
      ),
  },
  {
    name: "redirect",
    ...both(refused(502, "upstream_redirect", "void")),
    answer: (_of, chance) => ({
      ...jsonResponse({}, chance.one([301, 302, 307, 308])),
      headers: { location: "http://169.254.169.254/" },
    }),
  },
  { name: "HTML page with status 200", ...both(UNREADABLE), answer: () => htmlResponse() },
  {
    name: "HTML page with status 200 and the content type of a response",
    ...both(UNREADABLE),
    answer: (of) => ({ ...htmlResponse(), headers: { "content-type": of.type } }),
  },
  {
    name: "Content-Length larger than the body",
    whole: [LOST, HEARD_BROKEN],
    stream: [served("exact"), BROKEN],
    answer: (of) => raw(head(of, `content-length: ${of.bytes.length + 50}`), of.bytes),
  },
  {
    name: "Content-Length smaller than the body, then an unrequested response",
    whole: [UNREADABLE, HEARD],
    stream: [BROKEN, UNREADABLE],
    answer: (of) =>
      raw(head(of, `content-length: ${half(of)}`), of.bytes.subarray(0, half(of)), POISON),
  },
  {
    name: "Content-Length and Transfer-Encoding",
    ...both(refused(502, "bad_http", "estimated")),
    answer: (of) =>
      raw(
        head(of, `content-length: ${of.bytes.length}`, "transfer-encoding: chunked"),
        chunk(of.bytes),
        "0\r\n\r\n",
      ),
  },
  {
    name: "chunk without a size",
    whole: [refused(502, "bad_http", "estimated"), HEARD_BROKEN],
    stream: [BROKEN, refused(502, "bad_http", "estimated")],
    answer: (of) =>
      raw(
        head(of, "transfer-encoding: chunked"),
        chunk(of.bytes.subarray(0, half(of))),
        "zz\r\n",
        of.bytes.subarray(half(of)),
      ),
  },
  {
    name: "missing last chunk",
    whole: [LOST, HEARD_BROKEN],
    stream: [served("exact"), BROKEN],
    answer: (of) => raw(head(of, "transfer-encoding: chunked"), chunk(of.bytes)),
  },
  {
    name: "unrequested gzip",
    ...both(UNREADABLE),
    answer: (of) => ({ ...good(of), gzip: true }),
  },
  {
    name: "invalid gzip",
    ...both(UNREADABLE),
    answer: (of) => ({
      headers: { "content-type": of.type, "content-encoding": "gzip" },
      body: randomBytes(500),
    }),
  },
  {
    name: "gzip bomb of 50 MB",
    ...both(UNREADABLE),
    answer: (of) => ({
      headers: { "content-type": of.type, "content-encoding": "gzip" },
      body: BOMB,
    }),
  },
  ...(["reset", "close", "end"] as const).map((how): Fault => ({
    name: {
      reset: "RST between two events",
      close: "FIN between two events",
      end: "clean end between two events",
    }[how],
    whole: how === "end" ? [UNREADABLE, HEARD] : [LOST, HEARD_BROKEN],
    stream: [BROKEN, how === "end" ? UNREADABLE : LOST],
    answer: cutAt(how),
  })),
  {
    name: "no data in the middle of an event",
    waits: "idle",
    whole: [refused(504, "upstream_timeout", "estimated"), HEARD_BROKEN],
    stream: [BROKEN, refused(504, "upstream_timeout", "estimated")],
    answer: cutAt("stall", 9),
  },
  {
    name: "bytes sent slowly without end",
    waits: "total",
    whole: [refused(504, "upstream_timeout", "estimated"), HEARD_WHOLE, HEARD_BROKEN],
    stream: [refused(504, "upstream_timeout", "estimated"), BROKEN],
    // The shortest response has about forty bytes.
    answer: (of) => ({ ...good(of), chunks: "bytes", chunkDelayMs: 300 }),
  },
  {
    name: "random bytes instead of a response",
    ...both(UNREADABLE, HEARD),
    answer: (of) => ({ headers: { "content-type": of.type }, body: randomBytes(2_000) }),
  },
  {
    name: "invalid data between two events",
    whole: [UNREADABLE, PASSED, HEARD_BROKEN],
    stream: [BROKEN, UNREADABLE],
    answer: (of, chance) => {
      const cut = boundary(of, chance);
      const body = [
        of.bytes.subarray(0, cut),
        Buffer.from("data: {no json\n\n"),
        of.bytes.subarray(cut),
      ];
      return { ...good(of), body: Buffer.concat(body) };
    },
  },
  {
    name: "each byte in its own packet",
    ...FINE,
    answer: (of) => ({ ...good(of), chunks: "bytes" }),
  },
  {
    name: "line of 50 MB",
    heavy: true,
    ...both(UNREADABLE, HEARD, HEARD_BROKEN),
    answer: (of) => ({
      headers: { "content-type": of.type },
      body: ["data: ", ...Array<Buffer>(800).fill(LINE)],
    }),
  },
  {
    name: "invalid UTF-8",
    whole: [PASSED, UNREADABLE],
    stream: [UNREADABLE, BROKEN, PASSED, IN_BASE64],
    answer: (of) => good(replaced(of, MARK, "\xff\xfe\xc0")),
  },
  {
    name: "NUL in text",
    ...both(UNREADABLE, BROKEN, PASSED, IN_BASE64),
    answer: (of) => good(replaced(of, MARK, "\0")),
  },
  {
    name: "end of the response sent twice",
    whole: [UNREADABLE, HEARD_WHOLE],
    stream: [served("exact")],
    answer: (of) =>
      good({
        ...of,
        pieces: [...of.pieces, of.pieces.at(-1)!],
        bytes: Buffer.concat([of.bytes, of.bytes]),
      }),
  },
  {
    name: "data after the end of the response",
    whole: [UNREADABLE, HEARD_WHOLE],
    stream: [served("exact")],
    answer: (of) =>
      good({
        ...of,
        pieces: [...of.pieces, of.pieces[0]!, of.pieces[1]!],
        bytes: Buffer.concat([of.bytes, Buffer.from("{}")]),
      }),
  },
  {
    name: "end of the response not marked",
    whole: [UNREADABLE, HEARD],
    stream: [BROKEN, UNREADABLE],
    answer: (of) =>
      good({ ...of, pieces: of.pieces.slice(0, of.finish), bytes: of.bytes.subarray(0, -1) }),
  },
  { name: "no usage report", uncounted: true, ...GUESSED, answer: good },
  { name: "negative usage", ...GUESSED, answer: counting("-5") },
  { name: "impossibly large usage", ...GUESSED, answer: counting("1e300") },
  { name: "fractional usage", ...GUESSED, answer: counting("12.5") },
  {
    name: "usage reported twice",
    ...FINE,
    answer: (of) =>
      good({
        ...of,
        pieces: of.pieces.flatMap((piece) => (isReport(of, piece) ? [piece, piece] : [piece])),
      }),
  },
  ...(["1", "Wed, 21 Oct 2037 07:28:00 GMT", "250ms", "soon", "-1", "1000000000"] as const).map(
    (after): Fault => ({
      name: `429, retry-after: ${after}`,
      ...both(refused(429, "*", "void")),
      answer: failing(429, { "retry-after": after }),
    }),
  ),
  // A provider's own failure keeps its status in every protocol.
  ...[500, 502, 503, 504, 529].map((status): Fault => ({
    name: `${status}`,
    ...both(refused(status, "*", "void")),
    answer: failing(status),
  })),
  { name: "401", ...both(refused(502, "*", "void")), answer: failing(401) },
  {
    name: "HTML page with an error status",
    ...both(refused(500, "*", "void")),
    answer: () => htmlResponse(500, "<h1>Oops</h1>"),
  },
  {
    name: "JSON error that contains HTML",
    ...both(refused(500, "*", "void")),
    answer: () => jsonResponse({ error: "<html><script>alert(1)</script></html>" }, 500),
  },
  {
    name: "error with status 200",
    ...both(refused(502, "*", "estimated"), refused(503, "*", "estimated")),
    answer: (of) => {
      const error = JSON.stringify(spokenError(of.into, 500));
      return { ...good(of), body: of.stream ? `event: error\ndata: ${error}\n\n` : error };
    },
  },
];

const BOMB = gzipSync(Buffer.alloc(50e6));
/** It contains counts, and may be repeated. */
function isReport({ into, stream }: GoodAnswer, piece: Buffer): boolean {
  const text = piece.toString();
  return (
    stream &&
    into !== "gemini-image" &&
    /_tokens":|finishReason"/.test(text) &&
    !text.includes("completed")
  );
}
