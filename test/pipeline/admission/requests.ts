// Requests of every protocol with a number of some item, through the pipeline.
import { once } from "node:events";
import { connect } from "node:net";
import type { Protocol } from "tollgate/plugin";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { BOUNDS } from "../../../src/lib/bounds.ts";
import { unseal } from "../../../src/protocols/proof-envelope.ts";
import { until } from "../../kit/wait.ts";
import { startTestServices, type TestServicesOptions } from "../../kit/test-services.ts";
import { inAny } from "../../protocols/gemini/speech.ts";
import { CLIENTS } from "../protocol-pairs.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import type { ScopeConfig } from "../../../src/config/gateway-config.ts";
import type { HostExchange } from "../../../src/pipeline/exchange/exchange.ts";
import { ScopeHeaderReader } from "../../../src/pipeline/scopes/scope-headers.ts";
import { readScopeValues } from "../../../src/pipeline/scopes/scope-values.ts";
import { faultIn, type Driver, type Outcome, type Told } from "./way.ts";

export const SPOKEN: typeof CLIENTS = {
  toy: { protocol: createToyProtocol(), least: { text: "Hi" } },
  ...CLIENTS,
};
/** One pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const answers = () =>
  startUpstream({
    "POST /*": (asked) =>
      inAny(say("Hello"), asked) ??
      (asked.path.endsWith("/toy")
        ? jsonResponse({ id: "u", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" })
        : jsonResponse({ created: 1, data: [{ b64_json: PNG }] })),
  });

/** A gateway for clients of one protocol, with a provider of the same one. */
async function opened(protocol: Protocol<any>, more: Partial<TestServicesOptions>) {
  const up = await answers();
  const image = protocol.operationSpec.name === "image";
  const s = await startTestServices({
    frontend: protocol,
    providers: {
      p: {
        endpoints: [{ protocol, base: up.url, auth: "none" as const }],
        ...(image && {
          facts: new Map([["m", { operation: "image" as const }]]) as never,
          listModels: async () => [{ model: "m", operation: "image" as const }],
        }),
      },
    },
    ...more,
  });
  return {
    s,
    async [Symbol.asyncDispose]() {
      await s[Symbol.asyncDispose]();
      await up.close();
    },
  };
}

const told = async (
  { house }: Awaited<ReturnType<typeof startTestServices>>,
  to: Protocol<any>,
  got: Response,
): Promise<Outcome> => {
  const text = await got.text();
  // However it ended, nothing of it stays in memory.
  await until(() => house.memoryBudget.usedBytes === 0);
  return got.status === 200 ? "passes" : ({ status: got.status, text, to } as Told);
};

/** A client's minimal request, and additions to it. */
async function ask(
  from: string,
  more: string,
  of: Partial<TestServicesOptions> = {},
): Promise<Outcome> {
  const { protocol, least } = SPOKEN[from]!;
  await using at = await opened(protocol, of);
  const body = `${JSON.stringify({ model: "p/m", ...least }).slice(0, -1)},${more}}`;
  const headers = { "content-type": "application/json" };
  return await told(
    at.s,
    protocol,
    await fetch(`${at.s.url}/toy`, { method: "POST", headers, body }),
  );
}

/** From a client of every protocol. */
const all = (
  more: (n: number, from: string) => string,
  of: Partial<TestServicesOptions> = {},
): Driver =>
  Object.fromEntries(
    Object.keys(SPOKEN).map((from) => [
      `from ${from}`,
      { drive: (n: number) => ask(from, more(n, from), of) },
    ]),
  );

/** Values in a JSON text, including itself. */
const count = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, one) => sum + count(one), 1)
    : 1;
/** In a client's minimal request. */
const least = (from: string): number => count({ model: "p/m", ...SPOKEN[from]!.least });
/** Nested lists with this many values in total. None is a number, of which four count as one. */
function values(n: number): string {
  const lists: string[] = [];
  for (let left = n - 1; left > 0;) {
    // None is left that would have to be an empty list.
    const here = left > 10_001 ? Math.min(left - 2, 10_001) : left;
    lists.push(
      here === 1
        ? "true"
        : `[${Array(here - 1)
            .fill(true)
            .join()}]`,
    );
    left -= here;
  }
  return `[${lists.join()}]`;
}

const TOOLS: { readonly [from: string]: (i: number) => object | number } = {
  "chat-completions": (i) => ({ type: "function", function: { name: `f${i}` } }),
  messages: (i) => ({ name: `f${i}`, input_schema: { type: "object" } }),
  responses: (i) => ({ type: "function", name: `f${i}`, parameters: {}, strict: false }),
  gemini: (i) => ({ functionDeclarations: [{ name: `f${i}` }] }),
};
const listed = (n: number, one: (i: number) => unknown) =>
  JSON.stringify(Array.from({ length: n }, (_, i) => one(i)));

/** A form from a client of the smallest protocol. */
async function form(parts: string): Promise<Outcome> {
  const { protocol } = SPOKEN["toy"]!;
  await using at = await opened(protocol, { body: "either" });
  const body = `${field("model", "p/m")}${field("text", "Hi")}${parts}--b--\r\n`;
  const headers = { "content-type": "multipart/form-data; boundary=b" };
  return await told(
    at.s,
    protocol,
    await fetch(`${at.s.url}/toy`, { method: "POST", headers, body }),
  );
}
const field = (name: string, value = "x", more = "") =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n${more}\r\n${value}\r\n`;

/** A part with headers of this many bytes. */
function headed(n: number): string {
  const bare = field("a", "", "X: \r\n").length - "--b\r\n\r\n".length;
  return field("a", "", `X: ${"x".repeat(n - bare)}\r\n`);
}

/** A body that never arrives: the response to its headers. */
async function announced(n: number, of: Partial<TestServicesOptions>): Promise<Outcome> {
  const { protocol } = SPOKEN["toy"]!;
  await using at = await opened(protocol, of);
  const socket = connect(Number(new URL(at.s.url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  let text = "";
  socket.on("data", (chunk) => (text += chunk));
  socket.write(
    `POST /toy HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${n}\r\n\r\n`,
  );
  await until(() => text.endsWith("}") || at.s.house.memoryBudget.usedBytes === n);
  socket.destroy();
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  return text === "" ? "passes" : { status, text, to: protocol as never };
}

const padded = (n: number) => {
  const body = JSON.stringify({ model: "p/m", text: "Hi" });
  return body + " ".repeat(n - body.length);
};
async function whole(
  n: number,
  chunked: boolean,
  of: Partial<TestServicesOptions>,
): Promise<Outcome> {
  const { protocol } = SPOKEN["toy"]!;
  await using at = await opened(protocol, of);
  const text = padded(n);
  const got = await fetch(`${at.s.url}/toy`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: chunked ? new Blob([text]).stream() : text,
    ...(chunked && { duplex: "half" }),
  } as RequestInit);
  return await told(at.s, protocol, got);
}

const BODY = 300_000;
const LARGE = 1024 * 1024;
const ROOM = 3 * 65_536;

/** A sealed proof with this many characters. */
function sealed(n: number): Outcome {
  const letter = '{"t":"words"}'.padEnd(Math.floor(((n - 4) * 3) / 4), " ");
  const data = `tg1.${Buffer.from(letter).toString("base64url")}`;
  return unseal(data.padEnd(n, "="))?.text === "words" ? "passes" : "beyond";
}

/** Reads a value of a scope, with this many characters. */
function scopeValue(headers: object, body: object): Promise<Outcome> {
  const x = { headers, body, state: { connection: { req: {} } } } as unknown as HostExchange;
  const from: ScopeConfig["from"] = [
    { kind: "header", name: "x-run", text: "header:x-run" },
    { kind: "body", path: ["user"], text: "body:/user" },
  ];
  const scopes = [{ name: "run", from } as ScopeConfig];
  return faultIn(() => readScopeValues(x, scopes, new ScopeHeaderReader(scopes).read(x)));
}

export const requests = {
  scopeValue: {
    "in a header": { drive: (n) => scopeValue({ "x-run": "v".repeat(n) }, {}) },
    "in the body": { drive: (n) => scopeValue({}, { user: "v".repeat(n) }) },
  },
  envelope: { "that is brought back": { drive: sealed } },
  body: {
    "announced, before a byte of it": {
      most: BODY,
      drive: (n) => announced(n, { bodyBytes: BODY }),
    },
    "announced and sent": {
      most: BODY,
      drive: (n) => whole(n, false, { bodyBytes: BODY }),
    },
    "in chunks, of unknown length": {
      most: BODY,
      drive: (n) => whole(n, true, { bodyBytes: BODY }),
    },
    "as large as it may be": {
      drive: (n) => announced(n, { bodyBytes: BOUNDS.body.max }),
    },
  },
  inFlight: {
    announced: { most: ROOM, drive: (n) => announced(n, { room: ROOM }) },
    "in chunks, of unknown length": {
      most: ROOM,
      drive: (n) => whole(n, true, { room: ROOM }),
    },
  },
  jsonValues: {
    ...all((n, from) => `"all":${values(n - least(from))}`),
    "of a body that is looked at in turns": {
      drive: (n) =>
        ask("toy", `"all":${values(n - least("toy"))}${" ".repeat(LARGE)}`, {
          bodyBytes: BOUNDS.body.max,
        }),
    },
  },
  jsonEscapes: all((n) => `"all":"${"\\n".repeat(n)}"`, { bodyBytes: BOUNDS.body.max }),
  depth: {
    ...all((n) => `"all":${"[".repeat(n - 1)}0${"]".repeat(n - 1)}`),
    "in the names of a form": { drive: (n) => form(field(`a${"[b]".repeat(n - 1)}`)) },
  },
  name: {
    ...all((n) => `"all":{"${"a".repeat(n)}":1}`),
    "of the body itself": { drive: (n) => ask("toy", `"${"a".repeat(n)}":1`) },
    "in letters of two bytes": {
      drive: (n) => ask("toy", `"all":[{"${"é".repeat(n / 2)}${"a".repeat(n % 2)}":1}]`),
    },
    "in the names of a form": { drive: (n) => form(field(`a[${"b".repeat(n)}]`)) },
  },
  elements: {
    ...all((n) => `"all":[${Array(n).fill(0).join()}]`),
    "of an object": {
      drive: (n) =>
        ask("toy", `"all":${JSON.stringify(Object.fromEntries(Object.entries(Array(n).fill(0))))}`),
    },
  },
  tools: all((n, from) => `"tools":${listed(n, TOOLS[from] ?? (() => 1))}`),
  formParts: {
    "of two and more": {
      drive: (n) => form(Array.from({ length: n - 2 }, (_, i) => field(`f${i}`)).join("")),
    },
  },
  formHead: { "of one part": { drive: (n) => form(headed(n)) } },
} satisfies { readonly [name: string]: Driver };
