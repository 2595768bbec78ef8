// A codec whose methods return anything: each request ends with an error or a readable response,
// each reserve has its settle, and nothing stays open. Nothing is sent to a provider that its codec
// did not encode.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { everyNth } from "../../kit/law-effort.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const SSE = "text/event-stream";
const line = (o: object) => `${JSON.stringify(o)}\n`;
const STREAM = [
  line({ id: "u" }),
  line({ say: "Hello" }),
  line({ usage: { input: 3, output: 2 }, end: "stop" }),
].join("");

const unhandled: unknown[] = [];
const note = (problem: unknown) => void unhandled.push(problem);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
});
afterEach(async () => {
  await turnEventLoop(5);
  process.off("unhandledRejection", note);
  process.off("uncaughtException", note);
  expect(unhandled).toEqual([]);
});

const JUNK: readonly (readonly [name: string, value: unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["a number", 7],
  ["not a number", NaN],
  ["a text", "junk"],
  ["a text with a line in it", "a\r\nb"],
  ["a list", [1]],
  ["an object without members", {}],
  ["an object with junk in it", { status: 99_999, kind: "odd", message: 5, features: 5, body: 5n }],
  ["a function", () => 5],
  ["a promise that fails", Promise.reject(new Error("odd"))],
];
for (const [, value] of JUNK) if (value instanceof Promise) value.catch(() => {});

const SERVER = [
  "analyze",
  "decodeRequest",
  "contentType",
  "createEncoder",
  "encodeResponse",
  "encodeFault",
  "encodeHeaders",
  "ping",
] as const;
const CLIENT = [
  "encodeRequest",
  "createDecoder",
  "decodeResponse",
  "decodeFault",
  "mayHideReasoning",
  "analyze",
] as const;

/** With one member that returns this. */
function odd(id: string, half: "server" | "client", member: string, value: unknown): Protocol {
  const protocol = createToyProtocol(id);
  const made = member === "ping" ? value : () => value;
  return { ...protocol, [half]: { ...protocol[half], [member]: made } } as Protocol;
}

interface Told {
  readonly said: string;
  readonly status: number;
  readonly stream: boolean;
  /** Whether anything was sent to the provider. */
  readonly left: boolean;
}

/**
 * Requests non-streaming and streaming responses, from a provider that answers and one that
 * rejects.
 */
async function tried(client: Protocol, upstreams: readonly Protocol[]): Promise<Told[]> {
  let status = 200;
  await using up = await startBackend((req, res) => {
    const type = (JSON.parse(req.body) as { stream?: boolean }).stream ? SSE : "application/json";
    if (status === 200) res.writeHead(200, { "content-type": type }).end(STREAM);
    else res.writeHead(status, { "content-type": "application/json" }).end('{"error":"no"}');
  });
  const provider = (protocol: Protocol) => ({
    endpoints: [{ protocol, base: up.base, auth: "none" as const }],
  });
  await using s = await startTestServices({
    frontend: client,
    providers: Object.fromEntries(upstreams.map((each, i) => [`p${i}`, provider(each)])),
  });
  const told: Told[] = [];
  for (status of [200, 500])
    for (const stream of [true, false])
      for (const i of upstreams.keys()) {
        const before = up.asked.length;
        const signal = AbortSignal.timeout(20_000);
        const said = await s
          .ask({ model: `p${i}/m${status}${stream}`, text: "Hi", stream }, { signal })
          .then(
            async (res) => `${res.status} ${await res.text()}`,
            (problem: Error) => problem.name,
          );
        // A truncated connection has ended, and a silent one has not.
        expect(said).not.toContain("TimeoutError");
        told.push({ said, status, stream, left: up.asked.length > before });
      }
  const count = (what: string) => s.journal.filter((row) => row.do === what).length;
  await until(() => count("settle") === count("reserve"));
  await s.built.retire();
  return told;
}

/** Accepts everything, and returns nothing. */
const mute = () => ({ push() {}, end() {}, writeFault() {}, isBetweenEvents: true });

describe.each(SERVER)("a server half whose %s returns", (member) => {
  it.each(everyNth(3, JUNK, SERVER.indexOf(member)))("%s", async (_name, value) => {
    const client = odd("toy", "server", member, value);
    await tried(client, [createToyProtocol("other"), client]);
  });
});

/** Valid bodies. */
const isObject = (value: unknown) =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Promise);

describe.each(CLIENT)("a client half whose %s returns", (member) => {
  it.each(everyNth(3, JUNK, CLIENT.indexOf(member)))("%s", async (_name, value) => {
    const told = await tried(createToyProtocol(), [odd("other", "client", member, value)]);
    if (member !== "encodeRequest" || isObject(value)) return;
    for (const { said, left } of told) expect([said.slice(0, 4), left]).toEqual(["500 ", false]);
  });
});

describe("a response without a finish, as decoded by its codec, is an error", () => {
  it.each([
    ["a decoder", { createDecoder: mute, decodeResponse() {} }, "other"],
    ["a relay", { createPassthrough: mute }, "toy"],
  ] as const)("%s", async (_name, members, id) => {
    const upstream = {
      ...createToyProtocol(id),
      client: { ...createToyProtocol(id).client, ...members },
    } as Protocol;
    for (const { said, status } of await tried(id === "toy" ? upstream : createToyProtocol(), [
      upstream,
    ]))
      if (status === 200) expect(said).toMatch(/^502 .*truncated/);
  });
});
