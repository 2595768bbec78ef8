// Checks of a middleware. Each hook is checked by its own rule, with arguments that it must not
// change.
import assert from "node:assert/strict";
import { fail, getFault, type Fault } from "../../model/error.ts";
import type { Candidate, RecordedResponse, UpstreamResponse } from "../../plugin/call.ts";
import {
  type AttemptResult,
  HOOK_COMBINATIONS,
  type Hooks,
  type MiddlewareExtras,
} from "../../plugin/middleware.ts";
import { type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createOutgoing } from "../outgoing.ts";
import * as fakes from "../fakes.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkRoutes } from "./frontend.ts";
import type { ConformanceSubject } from "./subject.ts";
import type { ModelEvent } from "../../model/event.ts";
import { createEventGrammar } from "../event-grammar.ts";

/**
 * Returns the checks of a middleware. Each hook is run on fake requests and checked by its own
 * rule.
 */
export function middlewareChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Hooks & MiddlewareExtras>(subject);
  return [
    each("declares only known hooks, and at least one hook", checkShape),
    each("its routes are well-formed", ({ routes = [] }) => checkRoutes(routes)),
    each("admit: admits the request or rejects it with a reason", checkAdmit),
    each("edit: returns body fields and changes nothing in place", checkEdit),
    each("rewrite: returns a request and changes nothing in place", checkRewrite),
    each("inspect: accepts or rejects the request and changes nothing", checkInspect),
    each("route: returns given candidates or exclusions with reasons", checkRoute),
    each("charge: returns valid limits synchronously", checkCharge),
    each("prepare: edits the outgoing request synchronously", checkPrepare),
    each("attempt: calls next() at most once and passes failures on", checkAttempt),
    each(
      "attempt: shares no response between keys and stores nothing of private requests",
      checkRecordedAttempt,
    ),
    each("event: emits a valid event stream", checkEventHook),
    each("watch: is synchronous and changes nothing", checkWatchHook),
    each("settle: does not fail, whatever the outcome of the request", checkSettle),
  ];
}

/** Members that are not hooks. */
const EXTRAS: ReadonlySet<string> = new Set(["commands", "routes", "needsFirstKey"]);

function checkShape(hooks: Hooks): void {
  for (const [name, hook] of Object.entries(hooks)) {
    if (EXTRAS.has(name)) continue;
    assert.ok(name in HOOK_COMBINATIONS, `unknown hook ${name}`);
    assert.ok(hook === undefined || typeof hook === "function", `${name} is a function`);
  }
}

/**
 * Runs a hook that may throw a fault. The check fails for any other error, because the client would
 * receive a 500 with a fixed text.
 */
async function allowFault<T>(what: string, run: () => T): Promise<Awaited<T> | undefined> {
  try {
    return await run();
  } catch (error) {
    return assertFault(what, error);
  }
}

/** Runs a synchronous hook under the same rule. The result is not awaited. */
function allowFaultSync<T>(what: string, run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    return assertFault(what, error);
  }
}

function assertFault(what: string, error: unknown): undefined {
  assert.ok(getFault(error), `${what} throws an error that is not a fault: ${String(error)}`);
}

async function checkAdmit({ admit: hook }: Hooks): Promise<void> {
  if (!hook) return;
  for (const secret of [undefined, "", "tg_nobody", "x".repeat(5000), "\u0000"])
    for (const headers of [{}, { "service-zdr": "required" }, { "service-zdr": "???" }]) {
      const x = fakes.requestHead({ headers });
      await allowFault("admit", () => hook(x, secret));
      assert.ok(x.done.identities.length <= 1, "a request must be identified at most once");
    }
}

async function checkEdit({ edit: hook }: Hooks): Promise<void> {
  const fields = await allowFault("edit", () => hook?.(fakes.exchange()));
  assert.ok(["object", "undefined"].includes(typeof fields), "edit must return fields or nothing");
  for (const field of ["model", "stream"])
    assert.ok(!(field in (fields ?? {})), `${field} was already read, so edit must not return it`);
}

async function checkRewrite({ rewrite: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const x = fakes.exchange();
  const request = await allowFault("rewrite", () => hook(x.request, x));
  if (!request) return;
  assert.equal(
    request.operation,
    x.request.operation,
    "the operation of the request must not change",
  );
  for (const field of ["model", "stream", "rest", "ext"] as const)
    assert.ok(field in request, `the request must keep its field ${field}`);
}

async function checkInspect({ inspect: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const x = fakes.exchange({ identity: { id: "someone" } });
  const returned: unknown = await allowFault<unknown>("inspect", () => hook(x.request, x));
  assert.equal(returned, undefined, "inspect must return nothing: its return value is ignored");
}

async function checkRoute({ route: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const list = ["one", "two", "three"].map((provider) => fakes.candidate({ provider }));
  for (const some of [list, list.slice(0, 1), []]) {
    const routed = await allowFault("route", () =>
      hook(Object.freeze([...some]), fakes.exchange()),
    );
    for (const one of routed ?? []) {
      const candidate = "candidate" in one ? one.candidate : one;
      assert.ok(
        some.includes(candidate as Candidate),
        "route must return only candidates that it received",
      );
      if ("candidate" in one)
        assert.ok(
          one.message.length > 0 && one.code.length > 0,
          "an exclusion must have a code and a message",
        );
    }
  }
}

function checkCharge({ charge: hook }: Hooks): void {
  if (!hook) return;
  const exchange = fakes.exchange({ identity: { id: "someone" } });
  const charged = allowFaultSync("charge", () => hook(fakes.call({ exchange })));
  assert.ok(!(charged instanceof Promise), "charge must be synchronous");
  for (const { scope, max } of charged?.limits ?? []) {
    assert.ok(scope.length > 0, "a limit must have a scope");
    assert.ok(max >= 0, "a limit must not be negative");
  }
}

function checkPrepare({ prepare: hook }: Hooks): void {
  if (!hook) return;
  const body = deepFreeze({ model: "model", messages: [{ role: "user", content: "Hello" }] });
  for (const out of [createOutgoing(body), createOutgoing(undefined)]) {
    const returned: unknown = allowFaultSync<unknown>("prepare", () => hook(out, fakes.call()));
    assert.equal(returned, undefined, "prepare must return nothing: its return value is ignored");
    JSON.stringify(out.body);
  }
}

async function checkAttempt({ attempt: hook }: Hooks): Promise<void> {
  if (!hook) return;
  let nextCalls = 0;
  const answer = await allowFault("attempt", () =>
    hook(fakes.call(), async () => {
      nextCalls++;
      return fakes.reply();
    }),
  );
  assert.ok(nextCalls <= 1, `next() was called ${nextCalls} times; only the gateway may retry`);
  if (answer)
    assert.ok(
      isReply(answer) || isRecorded(answer) || "response" in answer,
      "attempt must return a reply, a recording, or a response",
    );
  const failed = await hook(fakes.call(), async () => fail("overloaded", "Busy.")).then(
    () => "an answer",
    (error: unknown) => getFault(error)?.kind ?? String(error),
  );
  assert.ok(
    failed === "overloaded" || nextCalls === 0,
    `a failed call was returned as ${failed}: pass the failure on, because its kind determines the action of the gateway`,
  );
}

const RECORDING: RecordedResponse = {
  operation: "chat",
  protocol: "chat-completions",
  stream: false,
  contentType: "application/json",
  body: Buffer.from('{"choices":[]}'),
  usage: {},
  model: "provider/model",
};

async function checkRecordedAttempt({ attempt: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const ask = async (of: Parameters<typeof fakes.exchange>[0]) => {
    let nextCalls = 0;
    const call = fakes.call({ exchange: fakes.exchange(of) });
    const got = await allowFault("attempt", () =>
      hook(call, async () => {
        nextCalls++;
        return fakes.reply({}, RECORDING);
      }),
    );
    // Data that the hook stores is stored after the reply.
    await new Promise((done) => setImmediate(done));
    return { nextCalls, recording: got !== undefined && isRecorded(got) };
  };
  const ann = { identity: { id: "ann" } };
  if ((await ask(ann)).nextCalls === 0) return;
  assert.ok(
    !(await ask({ identity: { id: "bob" } })).recording,
    "bob received ann's response: include the API key in the cache key",
  );
  assert.ok(
    !(await ask({ ...ann, privacy: "required" })).recording,
    "a private request received a recorded response",
  );
}

const isReply = (answer: AttemptResult): answer is UpstreamResponse =>
  "status" in answer && "recordResponse" in answer;
const isRecorded = (answer: AttemptResult): answer is RecordedResponse =>
  "contentType" in answer && "body" in answer;

async function checkSettle({ settle: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const fault = { kind: "overloaded" as const, message: "Busy." };
  for (const [x, outcome] of [
    [fakes.exchange({ identity: { id: "someone" } }), fakes.outcome()],
    [
      fakes.requestHead(),
      fakes.outcome({
        status: 401,
        mode: null,
        calls: [],
        fault: { kind: "unauthenticated", message: "No." },
      }),
    ],
    [
      fakes.exchange(),
      fakes.outcome({
        status: 503,
        mode: null,
        calls: [fakes.record({ state: "void", fault })],
        fault,
      }),
    ],
    [fakes.exchange(), fakes.outcome({ calls: [], cached: true })],
    [
      fakes.exchange(),
      fakes.outcome({ calls: [fakes.record({ costNano: null, state: "unpriced" })] }),
    ],
  ] as const)
    await hook(x, outcome);
}

// Checks of the hooks that receive the events of a response: `event`, which may change them, and
// `watch`, which only reads them.

const SAMPLE_STREAM: readonly ModelEvent[] = deepFreeze([
  { type: "start", id: "up1" },
  { type: "open", index: 0, block: { type: "reasoning" } },
  { type: "delta", index: 0, text: "Hm." },
  { type: "close", index: 0 },
  { type: "open", index: 1, block: { type: "text" } },
  { type: "open", index: 2, block: { type: "call", id: "c1", name: "f", tool: "function" } },
  { type: "delta", index: 1, text: "Hello" },
  { type: "delta", index: 2, text: "{}" },
  { type: "close", index: 2 },
  { type: "delta", index: 1, text: " there" },
  { type: "close", index: 1 },
  { type: "usage", usage: { input: 3, output: 5 } },
  { type: "finish", reason: "tool_calls" },
]);

/** An event that a later version of the contract could add. The plugin must ignore it. */
const UNKNOWN_EVENT = deepFreeze({
  type: "rumour",
  index: 1,
  text: "They say.",
}) as unknown as ModelEvent;
const STREAM_WITH_UNKNOWN: readonly ModelEvent[] = SAMPLE_STREAM.flatMap((e) =>
  e.type === "delta" && e.text === "Hello" ? [e, UNKNOWN_EVENT] : [e],
);

/** Passes an event to a stage, and names the event in the error if the stage fails. */
function passEvent(stage: (e: ModelEvent) => unknown, e: ModelEvent): unknown {
  try {
    return stage(e);
  } catch (problem) {
    if (e !== UNKNOWN_EVENT) throw problem;
    throw new Error("the hook fails for an unknown event: pass the event on or ignore it", {
      cause: problem,
    });
  }
}

/** The events that an `event` stage emits must still form a valid response. */
async function checkEventHook({ event: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const judge = createEventGrammar();
  let finished = false;
  let stopped = false;
  let newer = false;
  const done = Promise.withResolvers<void>();
  const stage = hook(
    fakes.call(),
    (e) => {
      assert.ok(!stopped, "no event may follow a fault");
      newer ||= (e.type as string) === "rumour";
      if ((e.type as string) !== "rumour") judge.event(e);
      if (e.type === "finish") finished = true;
      if (finished) done.resolve();
    },
    (fault) => {
      assert.ok(fault.kind && fault.message, "a fault must have a kind and a message");
      stopped = true;
      done.resolve();
    },
  );
  for (const e of STREAM_WITH_UNKNOWN)
    assert.equal(passEvent(stage, e), undefined, "a stage must be synchronous");
  const late = setTimeout(
    () => done.reject(new Error("The stage did not emit the finish event.")),
    5000,
  );
  await done.promise.finally(() => clearTimeout(late));
  if (stopped) return;
  judge.end();
  assert.ok(newer, "the stage drops an unknown event: pass the event on");
}

/** A `watch` hook must only read events. */
function checkWatchHook({ watch: hook }: Hooks): void {
  if (!hook) return;
  let stopped: Fault | undefined;
  const see = hook(fakes.call(), (fault) => (stopped = fault));
  assert.ok(typeof see === "function", "watch must return a function that receives each event");
  for (const e of STREAM_WITH_UNKNOWN)
    assert.equal(passEvent(see, e), undefined, "a watcher must be synchronous and return nothing");
  if (stopped) assert.ok(stopped.kind && stopped.message, "a fault must have a kind and a message");
}
