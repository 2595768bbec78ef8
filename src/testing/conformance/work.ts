// What a provider does by itself: lists, readiness, native endpoints. It obeys the grammar, it stops when it is told to,
// and it does not wait for an upstream that has already failed.
import { OWN_WORKS } from "../../model/own-works.ts";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { faultOf } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Kind, ModelRequest } from "../../model/request.ts";
import type { Call } from "../../plugin/call.ts";
import type { Endpoint, NativeEndpoint, Provider, WireEndpoint } from "../../plugin/provider.ts";
import type { ScriptedAnswer } from "../answer.ts";
import { plain } from "../codec.ts";
import { failing } from "../failing.ts";
import { freeze } from "../freeze.ts";
import { grammar } from "../grammar.ts";
import * as pretend from "../pretend.ts";
import { isStream, recordings, replay, type Recording } from "../recording.ts";
import { upstream, type ScriptedRoutes, type TestUpstream } from "../upstream.ts";
import { line, settling } from "./line.ts";
import { notChecked, type Subject } from "./subject.ts";

/** Whether the host sends for this endpoint; else the endpoint runs by itself. */
export const isWire = (endpoint: Endpoint): endpoint is WireEndpoint => "protocol" in endpoint;

/** Of a kind that a package adds, the `works` that the suite was given say how one asks for it. */
export const requestOf = (kind: Kind, model: string, { works = [] }: Subject): ModelRequest =>
  freeze(
    (
      works.find((work) => work.kind === kind) ??
      OWN_WORKS.get(kind) ??
      assert.fail(`What is ${kind}? Give its Work in \`works\`.`)
    ).sample(model),
  );

/** Fires the signal while the upstream is silent: the work ends, and the socket with it. Rejects when it goes on. */
export async function aborts(of: Provider, subject: Subject): Promise<void> {
  const { credential } = subject;
  await using up = await upstream({ "*": { cut: { after: "nothing", how: "stall" } } });
  for (const endpoint of of.endpoints) {
    const { models, ready } = of;
    const way = (signal: AbortSignal) => line(up, endpoint, credential, signal);
    if (models) await stops(up, "models()", (signal) => models(way(signal)));
    if (ready) await stops(up, "ready()", (signal) => ready(way(signal)));
    if (isWire(endpoint)) continue;
    await stops(up, "run()", (signal) => {
      const exchange = pretend.exchange({ signal });
      return drained(endpoint, pretend.call({ ...way(signal), exchange, protocol: null }), subject);
    });
  }
}

/** What has not ended by then goes on: no machine needs so long. What ends before is not judged by its time. */
const GOES_ON_MS = 2_000;
/** Longest wait for the first call of a provider to its upstream, in milliseconds. */
const CALLS_MS = 20_000;

/** Upstream is called and stays silent. The signal fires; the work ends and closes its connection, while upstream is still silent. */
async function stops(up: TestUpstream, what: string, work: (signal: AbortSignal) => unknown) {
  up.forget();
  const stop = new AbortController();
  const working = Promise.resolve(stop.signal).then(work);
  const over = working.then(
    () => undefined,
    () => undefined,
  );
  const asked = await Promise.race([up.request(1, CALLS_MS).catch(() => undefined), over]);
  if (!asked) return;
  stop.abort(new DOMException("The client went away.", "AbortError"));
  assert.equal(
    await settling(working, GOES_ON_MS),
    "settled",
    `${what} goes on after its signal fired`,
  );
  await settling(asked.over, GOES_ON_MS);
  assert.equal(asked.state, "aborted", `${what} leaves its connection open after its signal fired`);
}

/** Runs a native endpoint to its end. Rejects when its events break the grammar, or when one comes after an abort. */
export async function drained(
  endpoint: NativeEndpoint<any, any>,
  call: Call,
  subject: Subject,
  of?: ModelRequest,
): Promise<ModelEvent[]> {
  const judge = grammar();
  const events: ModelEvent[] = [];
  const request = of ?? requestOf(endpoint.kind, call.model, subject);
  for await (const event of endpoint.run(request as never, call, freeze(subject.credential))) {
    if (call.signal.aborted) throw new Error("An event came after the abort.");
    judge.event(event);
    events.push(event);
  }
  judge.end();
  return events;
}

const REFUSALS: readonly ScriptedRoutes[string][] = [
  failing(401, "No such key."),
  failing(503, "Busy."),
  { body: "<html>", headers: { "content-type": "text/html" } },
  { body: "{", cut: { after: 1, how: "close" } },
  { body: "", status: 204 },
];

/** models() and native runs against upstreams in trouble: they throw, in time. What they throw is searched by L7. */
export async function refused(of: Provider, subject: Subject): Promise<void> {
  const { credential, heard } = subject;
  for (const answer of REFUSALS) {
    await using up = await upstream({ "*": answer });
    for (const endpoint of of.endpoints) {
      const way = line(up, endpoint, credential);
      const work: Promise<unknown>[] = [];
      if (of.models) work.push(of.models(way));
      if (!isWire(endpoint))
        work.push(drained(endpoint, pretend.call({ ...way, protocol: null }), subject));
      for (const one of work) one.catch((error: unknown) => heard.push(error));
      for (const one of work)
        assert.equal(
          await settling(one, 5000),
          "settled",
          "it hangs where upstream has long answered",
        );
    }
  }
}

/** In process, or upstream of a recording: what comes out obeys the grammar. */
export async function native(of: Provider, subject: Subject): Promise<void> {
  for (const endpoint of of.endpoints) {
    if (isWire(endpoint)) continue;
    const { recordings: folder } = subject;
    const own = folder && existsSync(join(folder, "native")) ? join(folder, "native") : folder;
    const model = await modelOf(of, endpoint, subject);
    if (!own) await alone(endpoint, model, subject);
    else for (const one of recordings(own)) await replayed(endpoint, model, subject, one);
  }
}

/** One that it has, where that is known without asking an upstream. */
export async function modelOf(
  of: Provider,
  endpoint: NativeEndpoint<any, any>,
  { definition }: Subject,
): Promise<string> {
  await using up = await upstream({ "*": { status: 404 } });
  const facts = "facts" in definition ? definition.facts?.models : undefined;
  const list = facts ?? (await of.models?.(line(up, endpoint, {})).catch(() => []));
  return list?.find(({ kind }) => kind === endpoint.kind)?.model ?? "model";
}

/** An endpoint that sends by itself, with any credential. */
export type Native = NativeEndpoint<any, any>;

/** Runs a native endpoint against an upstream. What it says and throws is remembered for the search for secrets. */
export async function run(
  endpoint: Native,
  model: string,
  subject: Subject,
  up: TestUpstream,
): Promise<ModelEvent[]> {
  const { credential, heard } = subject;
  const call = pretend.call({ ...line(up, endpoint, credential), protocol: null, model });
  try {
    const events = await drained(endpoint, call, subject);
    heard.push(events);
    return events;
  } catch (error) {
    heard.push(error);
    throw error;
  }
}

/** An endpoint that asks no upstream shows what it can; one that asks needs an upstream that answers. */
async function alone(endpoint: Native, model: string, subject: Subject): Promise<void> {
  await using up = await upstream();
  try {
    await run(endpoint, model, subject, up);
  } catch (error) {
    if (up.requests.length === 0) throw error;
  }
  if (up.requests.length > 0 && subject.recordings !== false)
    throw new Error(notChecked("What a native endpoint makes of its upstream's answers", "native"));
}

/** In how many places an answer is broken off. */
const BREAKS = 12;
/** How long a run may take whose upstream has said everything. */
const HANGS_MS = 5_000;

/** Whole, in other helpings, and broken off: the same events, or an error. */
async function replayed(
  endpoint: Native,
  model: string,
  subject: Subject,
  one: Recording,
): Promise<void> {
  let hangs: string | undefined;
  const events = async (more: ScriptedAnswer = {}) => {
    await using up = await upstream({ "*": replay(one, more) });
    const running = run(endpoint, model, subject, up);
    running.catch(() => {});
    if ((await settling(running, HANGS_MS)) === "settled") return await running;
    hangs = `${one.name}: it hangs ${more.cut ? "where upstream breaks off" : "where upstream has answered"}`;
    throw new Error(hangs);
  };
  if (one.status >= 400 || one.expected?.error !== undefined)
    return assert.rejects(
      events(),
      (error) => faultOf(error) !== undefined,
      `${one.name}: a fault`,
    );
  const whole = await events();
  if (one.events) assert.deepEqual(plain(whole), plain(one.events), one.name);
  assert.deepEqual(
    plain(await events({ chunks: "bytes" })),
    plain(whole),
    `${one.name}, byte by byte`,
  );
  const stream = isStream(one);
  for (let i = 0; i < BREAKS; i++) {
    const after = Math.floor((one.body.length * i) / BREAKS);
    const framing = stream ? "chunked" : one.body.length;
    // A proxy between ends what it has properly, though more was to come.
    const how = stream && i % 2 === 1 ? "end" : "close";
    const part = await events({ framing, cut: { after, how } }).catch(() => undefined);
    assert.ok(hangs === undefined, hangs);
    if (part)
      assert.deepEqual(
        plain(part),
        plain(whole),
        `${one.name}: broken off after ${after} bytes, it was passed off as whole`,
      );
  }
}
