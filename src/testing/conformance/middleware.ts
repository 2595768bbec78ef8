// Checks of a middleware. Each hook is checked by its own rule, with arguments that no hook may
// change.
import assert from "node:assert/strict";
import { fail, getFault } from "../../model/error.ts";
import type { Candidate, RecordedResponse, UpstreamResponse } from "../../plugin/call.ts";
import {
  type AttemptResult,
  HOOK_COMBINATIONS,
  type Hooks,
  type MiddlewareRoutes,
} from "../../plugin/middleware.ts";
import type { Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createOutgoing } from "../outgoing.ts";
import * as fakes from "../fakes.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkEventHook, checkWatchHook } from "./events.ts";
import { checkRoutes } from "./routes.ts";
import type { ConformanceSubject } from "./subject.ts";

/**
 * Returns the checks of a middleware. Each hook is run on fake requests and checked by its own
 * rule.
 */
export function middlewareChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Hooks & MiddlewareRoutes>(subject);
  return [
    each("has hooks, and only those there are", checkShape),
    each("its routes are well-formed", ({ routes = [] }) => checkRoutes(routes)),
    each("admit: lets in or says why not", checkAdmit),
    each("edit: gives fields of a body, and changes none", checkEdit),
    each("rewrite: gives a request, and changes none", checkRewrite),
    each("inspect: lets pass or says why not, and changes nothing", checkInspect),
    each("route: gives fewer, in another order, or reasons", checkRoute),
    each("charge: declares limits that can be counted", checkCharge),
    each("prepare: edits what leaves, at once", checkPrepare),
    each("attempt: asks at most once, and passes failures on", checkAttempt),
    each(
      "attempt: gives no key what another one was answered, and nothing under privacy",
      checkRecordedAttempt,
    ),
    each("event: passes on a stream that obeys the grammar", checkEventHook),
    each("watch: looks at a stream at once, and changes nothing", checkWatchHook),
    each("settle: never fails, whatever became of the request", checkSettle),
  ];
}

function checkShape(hooks: Hooks): void {
  for (const [name, hook] of Object.entries(hooks)) {
    if (name === "commands" || name === "routes") continue;
    assert.ok(name in HOOK_COMBINATIONS, `there is no hook ${name}`);
    assert.ok(hook === undefined || typeof hook === "function", `${name} is a function`);
  }
}

/**
 * Runs a hook that may throw a fault. Any other throw would be a 500 with a fixed text, so the
 * check fails.
 */
async function allowFault<T>(what: string, run: () => T): Promise<Awaited<T> | undefined> {
  try {
    return await run();
  } catch (error) {
    return assertFault(what, error);
  }
}

/** Runs a synchronous hook under the same rule. Its result is used as it is. */
function allowFaultSync<T>(what: string, run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    return assertFault(what, error);
  }
}

function assertFault(what: string, error: unknown): undefined {
  assert.ok(getFault(error), `${what} throws something that is no fault: ${String(error)}`);
}

async function checkAdmit({ admit: hook }: Hooks): Promise<void> {
  if (!hook) return;
  for (const secret of [undefined, "", "tg_nobody", "x".repeat(5000), "\u0000"])
    for (const headers of [{}, { "service-zdr": "required" }, { "service-zdr": "???" }]) {
      const x = fakes.requestHead({ headers });
      await allowFault("admit", () => hook(x, secret));
      assert.ok(x.done.identities.length <= 1, "a request is identified once");
    }
}

async function checkEdit({ edit: hook }: Hooks): Promise<void> {
  const fields = await allowFault("edit", () => hook?.(fakes.exchange()));
  assert.ok(["object", "undefined"].includes(typeof fields), "edit gives fields, or nothing");
  for (const field of ["model", "stream"])
    assert.ok(!(field in (fields ?? {})), `${field} was read already, and is not edit's to give`);
}

async function checkRewrite({ rewrite: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const x = fakes.exchange();
  const request = await allowFault("rewrite", () => hook(x.request, x));
  if (!request) return;
  assert.equal(request.operation, x.request.operation, "a chat stays a chat");
  for (const field of ["model", "stream", "rest", "ext"] as const)
    assert.ok(field in request, `the request has lost its ${field}`);
}

async function checkInspect({ inspect: hook }: Hooks): Promise<void> {
  if (!hook) return;
  const x = fakes.exchange({ identity: { id: "someone" } });
  const said: unknown = await allowFault<unknown>("inspect", () => hook(x.request, x));
  assert.equal(
    said,
    undefined,
    "inspect refuses or does nothing; what it returns is not looked at",
  );
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
        "route gives what it was given, and nothing new",
      );
      if ("candidate" in one)
        assert.ok(one.message.length > 0 && one.code.length > 0, "an exclusion says why");
    }
  }
}

function checkCharge({ charge: hook }: Hooks): void {
  if (!hook) return;
  const exchange = fakes.exchange({ identity: { id: "someone" } });
  const charged = allowFaultSync("charge", () => hook(fakes.call({ exchange })));
  assert.ok(!(charged instanceof Promise), "charge answers at once");
  for (const { scope, max } of charged?.limits ?? []) {
    assert.ok(scope.length > 0, "a limit has a scope");
    assert.ok(max >= 0, "a limit is not negative");
  }
}

function checkPrepare({ prepare: hook }: Hooks): void {
  if (!hook) return;
  const body = deepFreeze({ model: "model", messages: [{ role: "user", content: "Hello" }] });
  for (const out of [createOutgoing(body), createOutgoing(undefined)]) {
    const returned: unknown = allowFaultSync<unknown>("prepare", () => hook(out, fakes.call()));
    assert.equal(returned, undefined, "prepare edits; what it returns is not looked at");
    JSON.stringify(out.body);
  }
}

async function checkAttempt({ attempt: hook }: Hooks): Promise<void> {
  if (!hook) return;
  let asked = 0;
  const answer = await allowFault("attempt", () =>
    hook(fakes.call(), async () => {
      asked++;
      return fakes.reply();
    }),
  );
  assert.ok(asked <= 1, `next() was called ${asked} times; trying again is the host's`);
  if (answer)
    assert.ok(
      isReply(answer) || isRecorded(answer) || "response" in answer,
      "an attempt gives a reply, a recording or an answer",
    );
  const failed = await hook(fakes.call(), async () => fail("overloaded", "Busy.")).then(
    () => "an answer",
    (error: unknown) => getFault(error)?.kind ?? String(error),
  );
  assert.ok(
    failed === "overloaded" || asked === 0,
    `a failed call came back as ${failed}: the host chooses what to do by its kind`,
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
    let asked = 0;
    const call = fakes.call({ exchange: fakes.exchange(of) });
    const got = await allowFault("attempt", () =>
      hook(call, async () => {
        asked++;
        return fakes.reply({}, RECORDING);
      }),
    );
    // Data that the hook stores is stored after the reply.
    await new Promise((done) => setImmediate(done));
    return { asked, recording: got !== undefined && isRecorded(got) };
  };
  const ann = { identity: { id: "ann" } };
  if ((await ask(ann)).asked === 0) return;
  assert.ok(
    !(await ask({ identity: { id: "bob" } })).recording,
    "bob is given what ann was answered: the key is part of what an answer is kept under",
  );
  assert.ok(
    !(await ask({ ...ann, privacy: "required" })).recording,
    "a private request is given a recording",
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
