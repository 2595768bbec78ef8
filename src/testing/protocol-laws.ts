// What holds for every protocol, ours and others': checked over recordings of what its upstreams really send.
import assert from "node:assert/strict";
import { ERRORS, faultOf, type ErrorKind } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import { fold } from "../model/fold.ts";
import type { Kind, ModelRequest } from "../model/request.ts";
import { UNITS } from "../model/usage.ts";
import type { ClientHalf, Protocol, ServerHalf } from "../plugin/protocol.ts";
import { answering, asking } from "./asking.ts";
import { check, type Check } from "./check.ts";
import { cut, type Chunks } from "./chunks.ts";
import {
  decode,
  decodeWhole,
  encoded,
  essence,
  plain,
  relay,
  wholeBytes,
  type RelayResult,
} from "./codec.ts";
import { freeze } from "./freeze.ts";
import { isStream, recordings, type Recording } from "./recording.ts";

/** What a protocol is judged by, and how thoroughly. */
export interface ProtocolLaws {
  /** A folder of recordings, or the recordings. */
  readonly recordings?: URL | string | readonly Recording[];
  /** How many ways to cut each recording by chance, beside byte by byte and all at once. */
  readonly trials?: number;
}

/** One recorded exchange under judgement. */
interface Case {
  readonly recording: Recording;
  readonly stream: boolean;
  readonly trials: number;
}

/**
 * The laws of protocols, as checks for a runner: a test file calls it while it is loaded. Recordings are read at once,
 * and a folder without any throws here; the codec runs only inside the checks.
 */
export function protocolLaws(protocol: Protocol, options: ProtocolLaws = {}): Check[] {
  const { id, client, server } = protocol as Protocol<Kind>;
  const from = options.recordings ?? [];
  const cases = (typeof from === "string" || from instanceof URL ? recordings(from) : from).map(
    (recording): Case => ({
      recording: freeze({ ...recording }),
      stream: isStream(recording),
      trials: options.trials ?? 40,
    }),
  );
  const each = (law: string, run: (of: Case) => void, fits: (of: Case) => boolean = answered) =>
    cases.filter(fits).map((of) => check(`${id}: ${law}: ${of.recording.name}`, () => run(of)));
  return [
    check(`${id}: has a name and at least one half`, () => shape(protocol as Protocol<Kind>)),
    ...(server ? [check(`${id}: every error has words`, () => refusals(server))] : []),
    ...(client && server
      ? each(
          "a request survives its own wire",
          (of) => roundTrip(client, server, of),
          () => true,
        )
      : []),
    ...(server
      ? each(
          "a survey changes nothing",
          (of) => surveyed(server, of),
          () => true,
        )
      : []),
    ...(client
      ? [
          ...each("the recorded meaning", (of) => meaning(client, of)),
          ...each(
            "any split of the bytes gives the same events",
            (of) => chunking(client, of),
            streamed,
          ),
          ...each("what is cut off is never whole", (of) => truncation(client, of)),
          ...each(
            "an error is a fault",
            (of) => faults(client, of),
            (of) => !answered(of),
          ),
        ]
      : []),
    ...(client && server
      ? each("stream and whole say the same", (of) => streamAndWhole(client, server, of))
      : []),
    ...(client?.relay && server ? each("the lanes agree", (of) => lanes(client, server, of)) : []),
  ];
}

const answered = ({ recording }: Case) => recording.status < 300;
const streamed = (of: Case) => of.stream && answered(of);

const askingOf = ({ stream }: Case) => freeze(asking({ stream }));
const answeringOf = ({ stream, recording }: Case) =>
  freeze(answering({ stream, body: recording.request }));

function events(client: ClientHalf<Kind>, of: Case, chunks: Chunks = "whole"): ModelEvent[] {
  const { body, headers } = of.recording;
  return of.stream
    ? decode(client, cut([body], chunks), askingOf(of), headers)
    : decodeWhole(client, body, askingOf(of), headers);
}

function shape({ id, client, server, headers }: Protocol<Kind>): void {
  assert.match(id, /^[a-z][a-z0-9-]*$/, "a protocol's id is lower case, with dashes");
  assert.ok(client || server, "a protocol without halves says nothing");
  for (const name of [...(headers?.request ?? []), ...(headers?.response ?? [])])
    assert.match(name, /^[a-z0-9-]+\*?$/, `the header ${name} is in lower case`);
}

/** Ours for every kind of error: plain JSON with words in it, and a status that says failure. */
function refusals(server: ServerHalf<Kind>): void {
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const message = `Something went wrong (${kind}).`;
    const fault = freeze({ kind, message, code: "some_code", retryAfterMs: 2000 });
    const { status, body } = server.fault(fault, { id: "x1" });
    if (status !== undefined) assert.ok(status >= 400 && status < 600, `${kind}: status ${status}`);
    const text = JSON.stringify(body);
    assert.deepEqual(plain(body), JSON.parse(text), `${kind}: the body is plain JSON`);
    if (kind !== "internal")
      assert.ok(text.includes(message), `${kind}: the message stands in the body: ${text}`);
  }
}

function surveyed(server: ServerHalf<Kind>, { recording }: Case): void {
  const first = server.survey(recording.request);
  assert.deepEqual(server.survey(recording.request), first, "two looks see the same");
  for (const feature of first.features) assert.equal(typeof feature, "string");
}

/**
 * What came over the wire goes back over the wire: decoding what was encoded gives the request again, apart from losses
 * that were declared; and what has been over it once is lossless from then on.
 */
function roundTrip(client: ClientHalf<Kind>, server: ServerHalf<Kind>, of: Case): void {
  const request = server.request(of.recording.request, "generate");
  const of1 = asking({ model: request.model, stream: request.stream });
  // What no codec knows is put back by the host.
  const wire = { ...client.request(freeze(request) as ModelRequest, freeze(of1)), ...request.rest };
  const again = server.request(freeze(wire), "generate");
  if (of1.losses.length === 0) assert.deepEqual(plain(again), plain(request));
  const of2 = asking({ model: request.model, stream: request.stream });
  const second = { ...client.request(freeze(again) as ModelRequest, freeze(of2)), ...again.rest };
  assert.deepEqual(plain(second), plain(wire));
  assert.deepEqual(of2.losses, [], "the second time nothing is left to lose");
}

function meaning(client: ClientHalf<Kind>, of: Case): void {
  const got = events(client, of);
  const expected = of.recording.events;
  if (!expected) return;
  assert.deepEqual(plain(got), plain(expected));
  const { usage } = fold(expected);
  for (const unit of UNITS) assert.equal(fold(got).usage[unit], usage[unit], `usage: ${unit}`);
}

function chunking(client: ClientHalf<Kind>, of: Case): void {
  const expected = plain(events(client, of));
  const same = (chunks: Chunks) =>
    assert.deepEqual(plain(events(client, of, chunks)), expected, `cut ${JSON.stringify(chunks)}`);
  same("bytes");
  for (const chunks of splits(of)) same(chunks);
}

/** By chance, and once at every byte where an event or a character could be torn. */
function* splits({ recording, trials }: Case): Generator<Chunks> {
  for (let seed = 1; seed <= trials; seed++) yield { seed, max: 1 << (seed % 9) };
  const step = Math.max(1, Math.floor(recording.body.length / 400));
  for (let at = 1; at < recording.body.length; at += step) yield { at: [at] };
}

/**
 * Of every beginning of an answer: either it throws, or it is a finish that was seen, and then everything that the model
 * said is there. Only counts may be missing.
 */
function truncation(client: ClientHalf<Kind>, of: Case): void {
  const { body, headers } = of.recording;
  const said = essenceWithoutUsage(events(client, of));
  const step = Math.max(1, Math.floor(body.length / 2000));
  for (let length = 0; length < body.length; length += step) {
    const part = body.subarray(0, length);
    let got: ModelEvent[];
    try {
      got = of.stream
        ? decode(client, [part], askingOf(of), headers)
        : decodeWhole(client, part, askingOf(of), headers);
    } catch (error) {
      assertFault(error, `cut after ${length} bytes`);
      continue;
    }
    assert.deepEqual(essenceWithoutUsage(got), said, `cut after ${length} of ${body.length} bytes`);
  }
}

const essenceWithoutUsage = (all: readonly ModelEvent[]) => {
  const { usage: _, ...said } = essence(all) as { usage: unknown };
  return said;
};

function assertFault(error: unknown, when: string): void {
  assert.ok(faultOf(error), `${when}: what is thrown is a fault, not ${String(error)}`);
}

function faults(client: ClientHalf<Kind>, { recording }: Case): void {
  const fault = client.fault(recording.status, recording.headers, recording.body);
  assert.ok(fault.kind in ERRORS, `${fault.kind} is a kind of error`);
  assert.ok(fault.message.length > 0, "a fault has words");
  assert.ok(fault.retryAfterMs === undefined || fault.retryAfterMs >= 0);
  for (const odd of ["", "<html>", "null", "[]", '"x"', '{"error":null}', "\u0000"])
    client.fault(recording.status, recording.headers, Buffer.from(odd));
}

/** Vectors, rankings: what comes in one piece and says so to a client that wants a stream. */
function isNeverStreamed(server: ServerHalf<Kind>): boolean {
  try {
    server.stream(() => {}, answering({ stream: true }));
    return false;
  } catch (error) {
    return faultOf(error)?.kind === "unsupported";
  }
}

function streamAndWhole(client: ClientHalf<Kind>, server: ServerHalf<Kind>, of: Case): void {
  if (isNeverStreamed(server)) return;
  const said = events(client, of);
  const asked = { body: of.recording.request };
  const streamed = encoded(server, said, answering({ ...asked, stream: true }));
  const whole = wholeBytes(server, said, answering(asked));
  const inStream = decode(client, [streamed], asking({ stream: true }));
  const inOne = decodeWhole(client, whole, asking());
  // Some wires tell a stream's counts only to clients that ask for them.
  const told = inStream.some((e) => e.type === "usage");
  const view = told ? essence : essenceWithoutUsage;
  assert.deepEqual(view(inStream), view(inOne));
}

/** What was relayed means what was translated, with the same counts, and does not depend on how the bytes came. */
function lanes(client: ClientHalf<Kind>, server: ServerHalf<Kind>, of: Case): void {
  const said = events(client, of);
  const to = answeringOf(of);
  const { headers } = of.recording;
  const relayed = relay(client, [of.recording.body], to, undefined, headers);
  const read = (bytes: Buffer) =>
    of.stream
      ? decode(client, [bytes], asking({ stream: true }))
      : decodeWhole(client, bytes, asking());
  const translated = of.stream
    ? encoded(server, said, answering({ stream: true, body: of.recording.request }))
    : wholeBytes(server, said, answering({ body: of.recording.request }));
  assert.deepEqual(essence(read(relayed.bytes)), essence(read(translated)));

  const { usage, finish } = fold(said);
  assert.deepEqual(plain(relayed.usage), plain(usage), "both lanes count the same");
  assert.equal(relayed.finish, finish.reason, "both lanes end for the same reason");
  assert.ok(relayed.finishAt! < relayed.bytes.length, "the finish is said before its bytes leave");
  if (!of.stream) return;
  for (const chunks of splits(of)) {
    const other = relay(client, cut([of.recording.body], chunks), to, undefined, headers);
    assert.deepEqual(comparable(other), comparable(relayed), `cut ${JSON.stringify(chunks)}`);
  }
}

const comparable = ({ bytes, usage, id, finish, finishAt }: RelayResult) => ({
  bytes: bytes.toString("latin1"),
  usage: plain(usage),
  id,
  finish,
  finishAt,
});
