// An upstream that lies, sends garbage, stalls, and floods. In all cases a client soon gets an
// error or a valid response, and the gateway continues.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  compressionBomb,
  errorResponse,
  htmlResponse,
  jsonResponse,
  say,
  scriptedModel,
  type ScriptedResponse,
  type UpstreamRequest,
  type ResponsePiece,
  type ScriptedReply,
  type ScriptedRoutes,
  type ScriptProtocol,
} from "tollgate/testing";
import { ALL, clientsOf, SPEECH, type Clients } from "./clients.ts";
import {
  freshOn,
  startGatewayWithUpstream,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";

let at: GatewayWithUpstream;
let clients: Clients;
let before: number;
/** A longer time is a hang: six times the silence limit below, and less than the total timeout. */
const SOON_MS = 25_000;
beforeAll(async () => {
  at = await startGatewayWithUpstream({ ...scriptedModel(say("")), ...ROUTES }, MORE);
  clients = clientsOf(at.gateway, SOON_MS);
  before = memory();
});
afterAll(() => at[Symbol.asyncDispose]());

const MORE =
  "middleware: [auth]\nstore: memory\ntimeouts: { connect: 1s, first_byte: 4s, idle: 4s, total: 30s }\n";

const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readStatus())?.[1] ?? 0) / 1024;
const readStatus = () => readFileSync(`/proc/${at.gateway.pid}/status`, "utf8");

/**
 * raises: anything but a response. hears: all of it. either: one of both, and nothing in between.
 */
type Verdict = "raises" | "hears" | "either";
/** Turns a valid response into the upstream's hostile one. */
type Fault = (
  answer: ScriptedResponse,
  spoken: ScriptProtocol,
  asked: UpstreamRequest,
) => ScriptedResponse;

const bytesOf = (piece: ResponsePiece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));
const parts = ({ body }: ScriptedResponse) => ([body].flat() as ResponsePiece[]).map(bytesOf);
const textOf = (answer: ScriptedResponse) => String(Buffer.concat(parts(answer)));
const among = (answer: ScriptedResponse, where: (all: Buffer[]) => Buffer[]): ScriptedResponse => ({
  ...answer,
  body: where(parts(answer)),
});
const middle = (more: string | Buffer) => (all: Buffer[]) =>
  all.toSpliced(Math.floor(all.length / 2), 0, Buffer.from(more));
const replaced = (answer: ScriptedResponse, from: RegExp, to: string): ScriptedResponse => ({
  ...answer,
  body: parts(answer).map((part) => String(part).replace(from, to)),
});
const raw = (text: string, more: ScriptedResponse = {}): ScriptedResponse => ({
  raw: text,
  ...more,
});
const head = (status: string, ...headers: string[]) =>
  `HTTP/1.1 ${status}\r\n${headers.map((h) => `${h}\r\n`).join("")}\r\n`;
const SSE = "content-type: text/event-stream";
const JSON_TYPE = "content-type: application/json";

const STREAMS: Readonly<Record<string, [Verdict, Fault]>> = {
  "nothing at all": ["raises", (a) => ({ ...a, body: [] })],
  "only comments": ["raises", (a) => ({ ...a, body: [": hello\n\n", ": still here\n\n"] })],
  garbage: ["raises", (a) => ({ ...a, body: ["\u0001\u0002 no events here\n\n", "more\n\n"] })],
  "binary noise": [
    "raises",
    (a) => ({ ...a, body: Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 197) & 255)) }),
  ],
  "one malformed line among good ones": ["either", (a) => among(a, middle("data: {not json}\n\n"))],
  "a comment among events": ["hears", (a) => among(a, middle(": OPENROUTER PROCESSING\n\n"))],
  "an event newer than us": [
    "hears",
    (a) =>
      among(
        a,
        middle(
          'event: future.thing\ndata: {"type":"future.thing","x":1,"object":"future","choices":[]}\n\n',
        ),
      ),
  ],
  "lines that end in CRLF": [
    "hears",
    (a) => ({ ...a, body: parts(a).map((p) => String(p).replaceAll("\n", "\r\n")) }),
  ],
  "lines that end in CR": [
    "hears",
    (a) => ({ ...a, body: parts(a).map((p) => String(p).replaceAll("\n", "\r")) }),
  ],
  "a byte order mark": ["hears", (a) => ({ ...a, body: ["\ufeff", ...parts(a)] })],
  "no space after data:": [
    "hears",
    (a) => ({ ...a, body: parts(a).map((p) => String(p).replaceAll("data: ", "data:")) }),
  ],
  "byte by byte": ["hears", (a) => ({ ...a, chunks: "bytes" })],
  slowly: ["hears", (a) => ({ ...a, chunks: 200, chunkDelayMs: 5 })],
  "bytes that are no UTF-8": [
    "raises",
    (a) =>
      among(
        a,
        middle(
          Buffer.concat([
            Buffer.from('data: {"x":"'),
            Buffer.from([0xff, 0xfe]),
            Buffer.from('"}\n\n'),
          ]),
        ),
      ),
  ],
  "a NUL": ["either", (a) => among(a, middle("data: \u0000\n\n"))],
  "two [DONE]": [
    "hears",
    (a, s) => (s === "chat-completions" ? { ...a, body: [...parts(a), "data: [DONE]\n\n"] } : a),
  ],
  "more after the end": ["hears", (a) => ({ ...a, body: [...parts(a), ...parts(a).slice(1, 3)] })],
  "usage twice": [
    "hears",
    (a) =>
      among(a, (all) =>
        all.flatMap((p) =>
          /usage":\{/.test(String(p)) &&
          !/response/.test(String(p)) &&
          !/message_start/.test(String(p))
            ? [p, p]
            : [p],
        ),
      ),
  ],
  "negative usage": [
    "either",
    (a) => replaced(a, /"(completion_tokens|output_tokens)":\d+/g, '"$1":-5'),
  ],
  "huge usage": [
    "either",
    (a) => replaced(a, /"(completion_tokens|output_tokens)":\d+/g, '"$1":99999999999999999999'),
  ],
  "usage in words": [
    "either",
    (a) => replaced(a, /"(completion_tokens|output_tokens)":\d+/g, '"$1":"many"'),
  ],
  "usage that is null": [
    "either",
    (a) => replaced(a, /"usage":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}/g, '"usage":null'),
  ],
  "calls with a gap in their index": [
    "hears",
    (a, s) =>
      s === "chat-completions"
        ? replaced(a, /"tool_calls":\[\{"index":0/g, '"tool_calls":[{"index":3')
        : a,
  ],
  "an error in the stream": [
    "raises",
    (_, s, asked) =>
      SPEECH.fail("It fell over.").toProtocol(s, { stream: true, responseNumber: asked.number }),
  ],
  "an error under a 200": [
    "raises",
    () =>
      jsonResponse({ error: { message: "No.", type: "server_error", code: null, param: null } }),
  ],
  "a page under a 200": ["raises", () => htmlResponse()],
  "a whole answer where a stream was asked for": [
    "either",
    (_, s, asked) => SPEECH.toProtocol(s, { responseNumber: asked.number }),
  ],
  "another protocol's stream": [
    "raises",
    (_, s) =>
      SPEECH.toProtocol(s === "messages" ? "chat-completions" : "messages", { stream: true }),
  ],
  "a wrong content-type": ["either", (a) => ({ ...a, headers: { "content-type": "text/plain" } })],
  "no content-type": ["either", (a) => ({ ...a, headers: { "content-type": undefined } })],
  "a line of 50 MB": [
    "either",
    (a) =>
      among(
        a,
        middle(
          Buffer.concat([
            Buffer.from('data: {"x":"'),
            Buffer.alloc(50 << 20, 120),
            Buffer.from('"}\n\n'),
          ]),
        ),
      ),
  ],
  "a stall in the middle": [
    "raises",
    (a) => ({ ...a, truncation: { after: { pieces: 3 }, how: "stall" } }),
  ],
  zipped: ["either", (a) => ({ ...a, gzip: true })],
};

const WHOLES: Readonly<Record<string, [Verdict, Fault]>> = {
  "nothing at all": ["raises", (a) => ({ ...a, body: "" })],
  "half of it": ["raises", (a) => ({ ...a, body: textOf(a).slice(0, 80) })],
  garbage: ["raises", (a) => ({ ...a, body: "\u0001\u0002 no JSON" })],
  null: ["raises", (a) => ({ ...a, body: "null" })],
  "a list": ["raises", (a) => ({ ...a, body: "[]" })],
  "an empty object": ["raises", (a) => ({ ...a, body: "{}" })],
  "an error under a 200": [
    "raises",
    () =>
      jsonResponse({ error: { message: "No.", type: "server_error", code: null, param: null } }),
  ],
  "a page under a 200": ["raises", () => htmlResponse()],
  "a stream where none was asked for": ["either", (_, s) => SPEECH.toProtocol(s, { stream: true })],
  "a wrong content-type": ["either", (a) => ({ ...a, headers: { "content-type": "text/plain" } })],
  "no content-type": ["either", (a) => ({ ...a, headers: { "content-type": undefined } })],
  "bytes that are no UTF-8": ["either", (a) => ({ ...a, body: Buffer.from(textOf(a), "latin1") })],
  "negative usage": [
    "either",
    (a) => replaced(a, /"(completion_tokens|output_tokens)":\d+/g, '"$1":-5'),
  ],
  "usage in words": [
    "either",
    (a) => replaced(a, /"(completion_tokens|output_tokens)":\d+/g, '"$1":"many"'),
  ],
  zipped: ["either", (a) => ({ ...a, gzip: true })],
  "a bomb": ["raises", () => compressionBomb(300 << 20)],
  "not what its zip says": [
    "raises",
    (a) => ({ ...a, headers: { ...a.headers, "content-encoding": "gzip" } }),
  ],
  "a length that is too long": [
    "raises",
    (a) => ({
      ...a,
      framing: textOf(a).length + 500,
      truncation: { after: 1 << 20, how: "close" },
    }),
  ],
  "a length that is too short": ["raises", (a) => ({ ...a, framing: 20 })],
  "until the connection closes": ["hears", (a) => ({ ...a, framing: "close" })],
  "byte by byte": ["hears", (a) => ({ ...a, framing: "chunked", chunks: "bytes" })],
  "a stall": ["raises", (a) => ({ ...a, truncation: { after: 20, how: "stall" } })],
};

/** At the byte level: content that no HTTP library would write. */
const WIRES: Readonly<Record<string, [Verdict, Fault]>> = {
  "a reset before the head": [
    "raises",
    (a) => ({ ...a, truncation: { after: "nothing", how: "reset" } }),
  ],
  "an end before the head": [
    "raises",
    (a) => ({ ...a, truncation: { after: "nothing", how: "close" } }),
  ],
  silence: ["raises", (a) => ({ ...a, truncation: { after: "nothing", how: "stall" } })],
  "silence after the head": [
    "raises",
    (a) => ({ ...a, truncation: { after: "headers", how: "stall" } }),
  ],
  "a status line that is none": ["raises", () => raw("HELLO THERE\r\n\r\n")],
  "an answer to nobody's HTTP": ["raises", () => raw("SSH-2.0-OpenSSH_9.9\r\n")],
  "a head of 70 KB": [
    "raises",
    () =>
      raw(head("200 OK", `x-long: ${"x".repeat(70_000)}`, JSON_TYPE, "content-length: 2") + "{}"),
  ],
  "a head that drips": [
    "raises",
    () =>
      raw(head("200 OK", JSON_TYPE, "content-length: 2") + "{}", {
        chunks: "bytes",
        chunkDelayMs: 1,
      }),
  ],
  "two lengths": [
    "raises",
    () => raw(head("200 OK", JSON_TYPE, "content-length: 2", "content-length: 5") + "{}"),
  ],
  "a length and chunks": [
    "raises",
    () =>
      raw(
        `${head("200 OK", JSON_TYPE, "content-length: 2", "transfer-encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`,
      ),
  ],
  "a chunk with a bad size": [
    "raises",
    () => raw(`${head("200 OK", SSE, "transfer-encoding: chunked")}zz\r\ndata\r\n`),
  ],
  "a body where none may be": ["raises", () => raw(`${head("204 No Content")}{"x":1}`)],
  "an odd status": ["raises", () => jsonResponse({ x: 1 }, 299)],
  "304": ["raises", () => ({ status: 304 })],
  "a redirect": ["raises", () => ({ status: 307, headers: { location: `${at.up.url}/trap` } })],
  "101": [
    "raises",
    () => raw(head("101 Switching Protocols", "upgrade: x", "connection: upgrade")),
  ],
  "100 that nobody asked for": ["either", (a) => ({ ...a, interimStatuses: [100] })],
  "an early hint": ["hears", (a) => ({ ...a, interimStatuses: [103] })],
};

/** Many in parallel: the prompt identifies the case of a request. */
const scripted: ((asked: UpstreamRequest) => ScriptedResponse)[] = [];
const byWords: ScriptedReply = (asked) =>
  scripted[Number(/fault (\d+)\./.exec(String(asked.body))![1])]!(asked);
const ROUTES: ScriptedRoutes = Object.fromEntries(
  ["/v1/chat/completions", "/v1/messages", "/v1/responses"].map((path) => [
    `POST ${path}`,
    byWords,
  ]),
);

async function ask(
  client: ScriptProtocol,
  up: ScriptProtocol,
  stream: boolean,
  fault: Fault,
): Promise<string> {
  const mine = scripted.push((asked) =>
    fault(
      SPEECH.toProtocol(up, {
        stream,
        responseNumber: asked.number,
        model: "model",
        body: asked.json(),
      }),
      up,
      asked,
    ),
  );
  const words = `fault ${mine - 1}.`;
  let late = false;
  const limit = setTimeout(() => (late = true), SOON_MS - 1_000);
  const said = await clients[stream ? "streamed" : "whole"][client](freshOn(up), words).then(
    ({ all, ended }) => (ended ? all : `not ended: ${all}`),
    (error: Error) => {
      return `raised: ${error.message}`;
    },
  );
  clearTimeout(limit);
  return late ? `too late: ${said}` : said;
}

function judge(said: string, verdict: Verdict): void {
  if (verdict === "raises") expect(said).toMatch(/^raised: /);
  else if (verdict === "hears") expect(said).toBe(ALL);
  else if (!said.startsWith("raised: ")) expect(said).toBe(ALL);
}

const pairs = SPOKEN.flatMap((client) =>
  SPOKEN.map((up): [ScriptProtocol, ScriptProtocol] => [client, up]),
);

describe.each(pairs)("a client of %s, an upstream of %s", (client, up) => {
  it.concurrent.each(Object.entries(STREAMS))("streams: %s", async (_name, [verdict, fault]) =>
    judge(await ask(client, up, true, fault), verdict),
  );
  it.concurrent.each(Object.entries(WHOLES))("non-streaming: %s", async (_name, [verdict, fault]) =>
    judge(await ask(client, up, false, fault), verdict),
  );
});

describe.each(SPOKEN)("an upstream of %s, with raw bytes", (up) => {
  it.concurrent.each(Object.entries(WIRES))("%s", async (_name, [verdict, fault]) => {
    for (const stream of [true, false]) judge(await ask(up, up, stream, fault), verdict);
  });
});

describe.each(SPOKEN)("an upstream of %s that is overloaded", (up) => {
  it.each(["2", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", "-1", "1000000000", "1.5", ""])(
    "429 with retry-after: %s",
    async (retryAfter) => {
      for (const route of Object.keys(ROUTES))
        at.up.setRoutes({ [route]: errorResponse(429, "Slow down.", { retryAfter }) });
      const response = await fetch(`${at.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${at.gateway.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: freshOn(up), messages: [{ role: "user", content: "Hi" }] }),
      });
      expect(response.status).toBe(429);
      expect(await response.json()).toMatchObject({
        error: { message: expect.stringContaining("Slow down.") },
      });
      const told = response.headers.get("retry-after");
      if (told !== null)
        expect(Number(told), `what a client may read: ${told}`).toBeGreaterThanOrEqual(0);
    },
  );
});

describe("after all cases", () => {
  it("the gateway still responds, and retains nothing", async () => {
    at.up.setRoutes(ROUTES);
    for (const up of SPOKEN) {
      const said = await ask(up, up, true, (answer) => answer);
      expect(said).toBe(ALL);
    }
    expect(
      at.up.requests.filter(({ path }) => path === "/trap"),
      "redirects",
    ).toEqual([]);
    const health = await fetch(`${at.gateway.url}/healthz`);
    expect(health.status).toBe(200);
    expect(at.gateway.log.filter(({ msg }) => /not caught|did not stop/.test(msg))).toEqual([]);
    expect(memory() - before, "megabytes").toBeLessThan(400);
  });
});
