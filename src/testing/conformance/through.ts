// A provider's answers through a real gateway: what a client gets is what the codec says in the kit, on both lanes, as a
// stream it comes as it is said, and what breaks off is never whole. The gateway decides what is a stream, what may leave
// and what is billed, so no codec law can stand for this.
import assert from "node:assert/strict";
import { fold } from "../../model/fold.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Kind } from "../../model/request.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { Decoder, Protocol, RelaySink } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { Settle } from "../../plugin/store.ts";
import type { ScriptedAnswer } from "../answer.ts";
import { answering, asking } from "../asking.ts";
import { cut, type Chunks } from "../chunks.ts";
import { decode, decodeWhole, encoded, essence, plain, relay, wholeBytes } from "../codec.ts";
import type { TestGateway } from "../gateway.ts";
import { isStream, replay } from "../recording.ts";
import { upstream, type UpstreamRequest, type TestUpstream } from "../upstream.ts";
import { mounted, type Case } from "./mounted.ts";
import { recorded } from "./recorded.ts";
import type { Subject } from "./subject.ts";

/** How long a client waits here for what upstream has said already. */
const PATIENCE_MS = 10_000;
/** In how many places an answer is broken off. */
const BREAKS = 6;

/**
 * Sends every recording through a real gateway, on both lanes, whole and broken off. Rejects with the first that is
 * not kept, by name.
 */
export async function through(provider: Provider, subject: Subject): Promise<void> {
  const cases = casesOf(provider, subject);
  if (cases.length === 0) return;
  await using up = await upstream();
  await using at = await mounted(cases, subject, up.url);
  for (const of of cases) {
    const what = `${of.recording.name}, ${of.lane}`;
    await judged(of, up, at).catch((error: Error) => {
      subject.heard.push(error);
      throw new Error(`${what}: ${error.message}`, { cause: error });
    });
  }
  subject.heard.push(...at.logs);
}

/** Both lanes for each recording of a protocol that has both halves; with one half there is no client to judge by. */
function casesOf(provider: Provider, subject: Subject): Case[] {
  let n = 0;
  return recorded(provider, subject).flatMap(({ endpoint, protocol, recordings }) => {
    const { client, server } = protocol as Protocol<Kind>;
    if (!client || !server) return [];
    const lanes = client.relay ? (["verbatim", "translated"] as const) : (["translated"] as const);
    return recordings.flatMap((recording) =>
      lanes.map((lane): Case => {
        const stream = isStream(recording);
        return { endpoint, client, server, recording, stream, lane, n: n++ };
      }),
    );
  });
}

async function judged(of: Case, up: TestUpstream, at: TestGateway): Promise<void> {
  const { recording, stream, n } = of;
  let answer: ScriptedAnswer = replay(recording);
  up.script({
    [`POST /providers.p${n}/*`]: () => answer,
    "*": (asked: UpstreamRequest) => ({ status: 404, body: `nothing at ${asked.path}` }),
  });
  if (recording.status >= 300) {
    const refused = await asked(of, at);
    assert.ok(refused.status >= 400, `upstream refused, and the client was told ${refused.status}`);
    assert.ok(!refused.text.includes("Something went wrong here"), "the fault has no words");
    return;
  }
  const due = expected(of);
  const begun = stream ? contentAt(of) : undefined;
  if (begun !== undefined) {
    answer = replay(recording, { cut: { after: begun, how: "stall" } });
    const first = await beginning(of, at);
    assert.ok(first.length > 0, "what upstream has said does not reach the client before the rest");
  }
  for (const chunks of [
    "whole",
    { seed: n + 1 },
    ...(recording.body.length < 4_000 ? ["bytes" as const] : []),
  ] as Chunks[]) {
    answer = replay(recording, { chunks });
    const got = await asked(of, at);
    assert.equal(got.status, 200, `a good answer became ${got.status}: ${got.text.slice(0, 300)}`);
    assert.deepEqual(said(of, got), due, `upstream's bytes came ${JSON.stringify(chunks)}`);
  }
  billed(of, at);
  const { length } = recording.body;
  for (let i = 0; i < BREAKS; i++) {
    const after = Math.floor((length * i) / BREAKS);
    answer = replay(recording, {
      framing: stream ? "chunked" : length,
      cut: { after, how: "close" },
    });
    const got = await asked(of, at).catch(() => undefined);
    if (!got || got.status !== 200) continue;
    let whole: unknown;
    try {
      whole = said(of, got);
    } catch {
      continue;
    }
    assert.deepEqual(
      whole,
      due,
      `broken off after ${after} of ${length} bytes, it was passed off as whole`,
    );
  }
}

interface Got {
  readonly status: number;
  readonly text: string;
  readonly bytes: Buffer;
  readonly headers: Record<string, string>;
}

function ask({ endpoint, recording, lane, stream, n }: Case, at: TestGateway, signal: AbortSignal) {
  const query = new URLSearchParams({ model: `p${n}/model`, stream: String(stream) });
  const form = formOf(recording.request);
  return fetch(`${at.url}/${endpoint.protocol.id}/${lane}?${query}`, {
    method: "POST",
    ...(!form && { headers: { "content-type": "application/json" } }),
    body: form ?? JSON.stringify(recording.request),
    signal,
  });
}

/** A request with a file in it, as clients send it. */
function formOf(request: Body): FormData | undefined {
  if (!Object.values(request).some(isFilePart)) return undefined;
  const form = new FormData();
  for (const [name, value] of Object.entries(request))
    if (isFilePart(value))
      form.append(
        name,
        new Blob([new Uint8Array(value.data)], { type: value.mime }),
        value.filename,
      );
    else if (Array.isArray(value)) for (const one of value) form.append(`${name}[]`, String(one));
    else form.append(name, String(value));
  return form;
}

async function asked(of: Case, at: TestGateway): Promise<Got> {
  const res = await ask(of, at, AbortSignal.timeout(PATIENCE_MS));
  const bytes = Buffer.from(await res.arrayBuffer());
  return {
    status: res.status,
    text: bytes.toString(),
    bytes,
    headers: Object.fromEntries(res.headers),
  };
}

/** The first bytes of an answer whose rest does not come; empty when nothing does. */
async function beginning(of: Case, at: TestGateway): Promise<Uint8Array> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), PATIENCE_MS);
  try {
    const res = await ask(of, at, stop.signal);
    const { value } = await res.body!.getReader().read();
    return value ?? new Uint8Array();
  } catch (error) {
    if (stop.signal.aborted) return new Uint8Array();
    throw error;
  } finally {
    clearTimeout(late);
    stop.abort();
  }
}

function events({ client, recording, stream }: Case, bytes: Buffer, headers = recording.headers) {
  return stream
    ? decode(client, [bytes], asking({ stream }), headers, { guessed: true })
    : decodeWhole(client, bytes, asking({ stream }), headers);
}

/** What belongs to a model names it: here by the provider that it was asked of, there by none. */
function unnamed(value: unknown, of = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => unnamed(one));
  if (Object.getPrototypeOf(value ?? 0) !== Object.prototype) return value;
  const all = Object.entries(value as object).filter(
    ([name]) => of !== "proof" || name !== "model",
  );
  return Object.fromEntries(all.map(([name, one]) => [name, unnamed(one, name)]));
}

const meaning = (all: readonly ModelEvent[]): unknown => {
  const { blocks, finish } = essence(all) as { blocks: unknown; finish: unknown };
  return { blocks: unnamed(blocks), finish };
};

const said = (of: Case, { bytes, headers }: Got): unknown => meaning(events(of, bytes, headers));

/** What the codec alone makes of it, as a host would use it. */
function expected(of: Case): unknown {
  const { client, server, recording, stream, lane } = of;
  const to = answering({ stream, body: recording.request });
  const all = events(of, recording.body);
  // Upstream may have carried it in another form than a client is given: in binary frames.
  const usual = stream ? "text/event-stream" : "application/json";
  const headers = { ...recording.headers, "content-type": server.type?.(to) ?? usual };
  if (lane === "verbatim") {
    const passed = relay(client, [recording.body], to, fold(all).usage, recording.headers);
    return meaning(events(of, passed.bytes, headers));
  }
  return meaning(events(of, (stream ? encoded : wholeBytes)(server, all, to), headers));
}

/** After how many bytes the codec alone has written something of what the model said; undefined where that is only at its end. */
function contentAt({ client, server, recording, lane }: Case): number | undefined {
  let content = false;
  let written = 0;
  let over = false;
  const to = answering({ stream: true, body: recording.request });
  const encoder = server.stream((text) => (written += text.length), to);
  const emit = (event: ModelEvent) => {
    content ||= event.type === "delta" || event.type === "media";
    over ||= event.type === "finish";
    if (!over) encoder.event(event);
  };
  const sink: RelaySink = {
    type() {},
    bytes: (chunk) => (written += chunk.length),
    content: () => (content = true),
    start() {},
    usage() {},
    finish: () => ((over = true), undefined),
  };
  const { push } =
    lane === "verbatim"
      ? binding(client.relay!(sink, to, recording.headers))
      : binding(client.stream(emit, asking({ stream: true }), recording.headers));
  for (const [i, byte] of cut([recording.body], "bytes").entries()) {
    push(byte);
    if (over) return undefined;
    if (content && written > 0) return i + 1;
  }
  return undefined;
}

const binding = (decoder: Decoder) => ({ push: (chunk: Buffer) => decoder.push(chunk) });

/** The last settled call of this case counts what the recording says. */
function billed(of: Case, { ledger }: TestGateway): void {
  const attempts = new Set(
    ledger.flatMap((row) =>
      row.do === "reserve" && row.target.provider === `p${of.n}` ? [row.attempt] : [],
    ),
  );
  const row = ledger.findLast(
    (each): each is Settle & { at: number } =>
      each.do === "settle" && attempts.has(each.attempt) && each.outcome === "ok",
  );
  assert.ok(row, "a whole answer was not settled");
  const { usage } = fold(events(of, of.recording.body));
  if (Object.keys(usage).length > 0)
    assert.deepEqual(plain(row.usage), plain(usage), "the ledger counts what upstream reported");
}
