// Runs a codec without a host, from bytes to events and back.
import { collectResponse } from "../model/response-collector.ts";
import type { ModelResponse, ModelEvent, UsageReport } from "../model/event.ts";
import type { Operation } from "../model/request.ts";
import { inputTokens, mergeUsage, outputTokens, type Usage } from "../model/usage.ts";
import type { HeadersIn } from "../model/values.ts";
import type { CallContext, ResponseContext, ClientHalf, ServerHalf } from "../plugin/protocol.ts";
import { createEventGrammar } from "./event-grammar.ts";

const NO_HEADERS: HeadersIn = Object.freeze({ "content-type": "text/event-stream" });

/** Decodes a stream. Every event is checked against the event grammar when it is emitted. */
export function decode(
  client: ClientHalf<Operation>,
  chunks: Iterable<Buffer>,
  of: CallContext,
  headers: HeadersIn = NO_HEADERS,
  rules: Parameters<typeof createEventGrammar>[0] = {},
): ModelEvent[] {
  const { events, emit, end } = createGrammarCheck(rules);
  const decoder = client.createDecoder(emit, of, headers);
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  end();
  return events;
}

/** Decodes a complete response. */
export function decodeWhole(
  client: ClientHalf<Operation>,
  body: Buffer,
  of: CallContext,
  headers: HeadersIn = { "content-type": "application/json" },
): ModelEvent[] {
  const { events, emit, end } = createGrammarCheck();
  client.decodeResponse(body, emit, of, headers);
  end();
  return events;
}

function createGrammarCheck(rules: Parameters<typeof createEventGrammar>[0] = {}) {
  const events: ModelEvent[] = [];
  const judge = createEventGrammar(rules);
  return {
    events,
    emit: (e: ModelEvent) => {
      judge.event(e);
      events.push(e);
    },
    end: judge.end,
  };
}

/**
 * Encodes events as a stream, in the same way as the host: with one usage event, the settled usage,
 * just before the finish event.
 */
export const encodeText = (
  server: ServerHalf<Operation>,
  events: readonly ModelEvent[],
  to: ResponseContext,
): string => encodeBytes(server, events, to).toString();

/**
 * Encodes events as a stream and returns bytes, because the output of a server half may not be
 * text.
 */
export function encodeBytes(
  server: ServerHalf<Operation>,
  events: readonly ModelEvent[],
  to: ResponseContext,
): Buffer {
  const pieces: Buffer[] = [];
  const encoder = server.createEncoder((more) => void pieces.push(Buffer.from(more as string)), to);
  let usage: Usage | undefined;
  let seen: UsageReport | undefined;
  for (const e of events) {
    if (e.type === "usage") {
      seen = e;
      usage = mergeUsage(usage ?? {}, e.usage);
      continue;
    }
    if (e.type === "finish" && seen) encoder.writeEvent({ ...seen, usage: usage! });
    encoder.writeEvent(e);
  }
  return Buffer.concat(pieces);
}

/** Encodes a complete response and returns its bytes. */
export function encodeWhole(
  server: ServerHalf<Operation>,
  events: readonly ModelEvent[],
  to: ResponseContext,
): Buffer {
  const encoded = server.encodeResponse(collectResponse(events), to);
  return Buffer.isBuffer(encoded) ? encoded : Buffer.from(JSON.stringify(encoded));
}

/** Result of forwarding bytes through a relay. */
export interface RelayResult {
  readonly bytes: Buffer;
  /** Media type that the relay reported. */
  readonly mediaType: string | undefined;
  readonly usage: Usage;
  readonly id: string | undefined;
  readonly finish: string | undefined;
  /** Number of bytes that were forwarded before the relay called `reportContent()`. */
  readonly firstContentOffset: number | undefined;
  readonly finishOffset: number | undefined;
}

/**
 * Forwards bytes through the relay of a client half. `settled` is the usage that the host would
 * return as settled. Default: none.
 */
export function runRelay(
  client: ClientHalf<Operation>,
  chunks: Iterable<Buffer>,
  to: ResponseContext,
  settled?: Usage,
  headers: HeadersIn = {},
): RelayResult {
  let type: string | undefined;
  const out: Buffer[] = [];
  let length = 0;
  let usage: Usage = {};
  let id: string | undefined;
  let finish: string | undefined;
  let contentAt: number | undefined;
  let finishAt: number | undefined;
  const tap = client.createPassthrough!(
    {
      setContentType: (mime) => void (type = mime),
      write(chunk) {
        // Copy the chunk, because later input must not change bytes that were already forwarded.
        out.push(Buffer.from(chunk));
        length += chunk.length;
      },
      reportContent: () => void (contentAt ??= length),
      reportStart: (name) => void (id ??= name),
      reportUsage: (event) => void (usage = mergeUsage(usage, event.usage)),
      reportFinish(reason) {
        finish = reason;
        finishAt ??= length;
        return settled;
      },
    },
    to,
    headers,
  );
  for (const chunk of chunks) tap.push(chunk);
  tap.end();
  return {
    bytes: Buffer.concat(out),
    mediaType: type,
    usage,
    id,
    finish,
    firstContentOffset: contentAt,
    finishOffset: finishAt,
  };
}

/** Returns the value without members that are `undefined`, which count as absent. */
export function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (Buffer.isBuffer(value)) return { bytes: value.toString("base64") };
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) =>
      one === undefined ? [] : [[key, withoutUndefined(one)]],
    ),
  );
}

/**
 * Returns the content of a response in a form that is the same for all clients and both modes:
 * without response IDs, and with usage as clients receive it.
 */
export function comparableContent(answer: ModelResponse | Iterable<ModelEvent>): unknown {
  const { blocks, items, usage, finish } =
    Symbol.iterator in answer ? collectResponse(answer) : answer;
  return withoutUndefined({
    ...(items && { items }),
    blocks: blocks.filter((block) => !("text" in block) || block.text !== "" || block.proof),
    usage: { input: inputTokens(usage), output: outputTokens(usage), ...usage },
    finish,
  });
}
