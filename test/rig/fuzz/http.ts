// Requests as bytes on a socket: valid ones, with changes in their first line, headers, framing,
// and bytes.
import { pick, type Operator } from "./input.ts";

const BODY = '{"model":"chat/m","messages":[{"role":"user","content":"a"}]}';
const lines = (...all: readonly string[]) => `${all.join("\r\n")}\r\n\r\n`;

/** `KEY` is replaced by the key. */
export const REQUESTS: readonly string[] = [
  lines(
    "POST /v1/chat/completions HTTP/1.1",
    "host: localhost",
    "authorization: Bearer KEY",
    "content-type: application/json",
    `content-length: ${BODY.length}`,
  ) + BODY,
  lines(
    "POST /v1/messages HTTP/1.1",
    "host: localhost",
    "x-api-key: KEY",
    "content-type: application/json",
    "transfer-encoding: chunked",
  ) + `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  lines(
    "POST /v1/responses HTTP/1.1",
    "host: localhost",
    "authorization: Bearer KEY",
    "content-type: application/json",
    "expect: 100-continue",
    "content-length: 30",
  ) + '{"model":"chat/m","input":"a"}',
  lines("GET /v1/models HTTP/1.1", "host: localhost", "authorization: Bearer KEY"),
  lines(
    "OPTIONS /v1/chat/completions HTTP/1.1",
    "host: localhost",
    "origin: http://localhost",
    "access-control-request-method: POST",
  ),
  lines("HEAD /healthz HTTP/1.1", "host: localhost"),
  lines("GET /healthz HTTP/1.0", "host: localhost", "connection: keep-alive"),
  lines("GET /healthz HTTP/1.1", "host: localhost") +
    lines("GET /readyz HTTP/1.1", "host: localhost"),
];

const HEADERS: readonly string[] = [
  "host: evil.test",
  "Host: localhost",
  "host:",
  "content-length: 0",
  "content-length: 5",
  "content-length: -1",
  "content-length: 99999999999999999999",
  "content-length: 0x10",
  "content-length: 5, 5",
  "content-length : 5",
  "Content-Length: +5",
  "transfer-encoding: chunked",
  "transfer-encoding: identity",
  "transfer-encoding: gzip, chunked",
  "transfer-encoding:\tchunked",
  "transfer-encoding: xchunked",
  "Transfer-Encoding: chunked, identity",
  "te: trailers",
  "connection: close",
  "connection: upgrade",
  "upgrade: h2c",
  "upgrade: websocket",
  "expect: 200-ok",
  "content-encoding: gzip",
  "content-type: text/plain",
  "content-type: application/json; charset=utf-16",
  "content-type: multipart/form-data; boundary=x",
  "authorization: Basic YTpi",
  "authorization: Bearer x",
  `x-long: ${"a".repeat(9_000)}`,
  `x-very-long: ${"a".repeat(20_000)}`,
  "x: \0",
  "x: \x7f",
  "x\x01y: z",
  " folded: x",
  "\tfolded",
  ":",
  "noColon",
  "x-tollgate-strict: maybe",
  "service-zdr: \u00ff",
  "cookie: a=b",
  "origin: https://evil.test",
  "idempotency-key: a",
  "x-forwarded-for: 127.0.0.1",
  "__proto__: x",
  "range: bytes=0-1",
  "trailer: x",
  "proxy-connection: keep-alive",
  "keep-alive: timeout=99999",
  "x-stainless-timeout: 1e999",
  "traceparent: 00-zz",
  Array<string>(120).fill("a: b").join("\r\n"),
];
const METHODS: readonly string[] = [
  "GET",
  "PUT",
  "DELETE",
  "TRACE",
  "CONNECT",
  "OPTIONS",
  "post",
  "PATCH",
  "X",
  "",
  "PRI",
  "M-SEARCH",
  "POST\t",
  "\0",
];
const TARGETS: readonly string[] = [
  "*",
  "/",
  "//",
  "/v1/../v1/models",
  "/v1/%2e%2e/models",
  "/%",
  "/%zz",
  "/v1/chat/completions?a=%",
  "http://localhost/v1/models",
  "http://evil.test/v1/models",
  "/v1/models#x",
  `/${"a".repeat(12_000)}`,
  "/v1/chat/completions/",
  "/files/../../etc/passwd",
  "/\\",
  "/v1/models/%2F%2F",
  "evil.test:80",
  "/\x80",
  "/v1/models HTTP/1.1\r\nx: y",
  "",
];
const VERSIONS: readonly string[] = [
  "HTTP/1.0",
  "HTTP/0.9",
  "HTTP/2.0",
  "HTTP/1.2",
  "HTTP/11",
  "http/1.1",
  "HTTP/1.1 ",
  "",
  "HTTP/1.1\t",
  "HTTP/9999.1",
];
const SIZES: readonly string[] = [
  "0",
  "ffffffffffffffff",
  "-1",
  "0x3",
  "3;ext=1",
  `3;${"e".repeat(20_000)}`,
  " 3",
  "3 ",
  "g",
  "",
  "00000000000000003",
  "3\n",
];
const ENDS: readonly string[] = ["\n", "\r", "\r\r\n", "\n\r", "\r\n ", "\r\n\t", "\0\r\n", ""];
const ODD: readonly string[] = [
  "\0",
  "\r",
  "\n",
  "\r\n",
  " ",
  "\t",
  "\x7f",
  "\x80",
  "\xff",
  "GET / HTTP/1.1\r\n\r\n",
  "0\r\n\r\n",
  "\r\n\r\n",
];

const spliced = (of: string, from: number, to: number, by: string) =>
  of.slice(0, from) + by + of.slice(to);
const onHead =
  (change: (all: string[], where: number, what: number) => string[]): Operator<string> =>
  (of, where, what) => {
    const end = of.indexOf("\r\n\r\n");
    if (end < 0) return of;
    return change(of.slice(0, end).split("\r\n"), where, what).join("\r\n") + of.slice(end);
  };
/** Position of a header: after the first line. */
const place = (all: readonly string[], where: number) => 1 + (where % all.length);
const onFirst =
  (part: 0 | 1 | 2, from: readonly string[]): Operator<string> =>
  (of, _where, what) => {
    const end = of.indexOf("\r\n");
    const words = of.slice(0, Math.max(0, end)).split(" ");
    words[part] = pick(from, what);
    return words.join(" ") + of.slice(Math.max(0, end));
  };
const onBytes =
  (change: (at: number, of: string, what: number) => string): Operator<string> =>
  (of, where, what) =>
    change(where % (of.length + 1), of, what);

export const OPERATORS: readonly Operator<string>[] = [
  onHead((all, where, what) => all.toSpliced(place(all, where), 0, pick(HEADERS, what))),
  onHead((all, where, what) => all.toSpliced(place(all, where), 0, pick(HEADERS, what))),
  onHead((all, where) => all.toSpliced(place(all, where), 1)),
  onHead((all, where) => all.toSpliced(place(all, where), 0, pick(all, where))),
  onHead((all, where, what) =>
    all.map((line, i) => (i === where % all.length ? line + pick(ENDS, what) : line)),
  ),
  onHead((all, where, what) =>
    all.map((line, i) =>
      i === where % all.length
        ? line.replace(":", pick([" :", "", "::", ":\0", ":\t\t", "="], what))
        : line,
    ),
  ),
  onFirst(0, METHODS),
  onFirst(1, TARGETS),
  onFirst(2, VERSIONS),
  (of, where, what) => {
    const sizes = [...of.matchAll(/\r\n([0-9a-f]+)\r\n/g)];
    if (sizes.length === 0) return of;
    const { index, 1: size } = pick(sizes, where);
    return spliced(of, index + 2, index + 2 + size!.length, pick(SIZES, what));
  },
  (of, where, what) => {
    const ends = [...of.matchAll(/\r\n/g)].map(({ index }) => index);
    if (ends.length === 0) return of;
    const at = pick(ends, where);
    return spliced(of, at, at + 2, pick(ENDS, what));
  },
  onBytes((at, of, what) => spliced(of, at, at, pick(ODD, what))),
  onBytes((at, of, what) => spliced(of, at, at + (what % 30), "")),
  onBytes((at, of) => of.slice(0, at)),
  onBytes((at, of, what) =>
    spliced(of, at, at + 1, String.fromCharCode((of.charCodeAt(at) || 0) ^ (1 << (what % 8)))),
  ),
  (of, where) => of + of.slice(0, where % of.length),
];
