// An observer: it takes what it is handed as it is, also what a later gateway adds, and never fails at it.
import assert from "node:assert/strict";
import type { Notice } from "../../plugin/notice.ts";
import type { LedgerLine, Observer, RequestRecord, TurnedAway } from "../../plugin/observer.ts";
import type { Check } from "../check.ts";
import { freeze } from "../freeze.ts";
import { running } from "./innocence.ts";
import { wellFormed } from "./routes.ts";
import type { Subject } from "./subject.ts";

const SERVED: RequestRecord = {
  at: 1795000000000,
  id: "x1",
  clientRequestId: "client-1",
  worker: 0,
  generation: 1,
  outcome: "ok",
  frontend: "chat-completions",
  protocol: "chat-completions",
  kind: "chat",
  op: "generate",
  name: "generate",
  method: "POST",
  route: "/v1/chat/completions",
  model: "fast",
  alias: "fast",
  served: "acme/m",
  pinned: false,
  passedOver: [{ candidate: "dear/m", credential: "default", by: "rest", code: "overloaded" }],
  stream: true,
  lane: "verbatim",
  status: 200,
  finish: "stop",
  cached: false,
  key: "k1",
  labels: { team: "web" },
  privacy: "off",
  receipt: "acme/chat-completions;retention=none",
  client: "192.0.2.0/24",
  losses: 1,
  lossCodes: { dropped: 1 },
  bytesIn: 256,
  bytesOut: 512,
  ms: 420,
  contentMs: 95,
  trace: { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" },
  ownMs: 1.25,
  calls: [
    {
      n: 1,
      spanId: "00f067aa0ba902b8",
      startMs: 5,
      provider: "acme",
      model: "m",
      credential: "default",
      protocol: "chat-completions",
      lane: "verbatim",
      state: "exact",
      usage: { input: 20, output: 7 },
      costNano: 140n,
      ms: { head: 80, content: 90, total: 400 },
    },
  ],
};

/** Refused before a provider was asked, unpriced, private, and with what this contract does not know. */
const RECORDS: readonly RequestRecord[] = [
  SERVED,
  {
    ...SERVED,
    id: "x2",
    status: 401,
    outcome: "refused",
    clientRequestId: undefined,
    alias: undefined,
    served: undefined,
    passedOver: undefined,
    contentMs: undefined,
    client: undefined,
    lane: null,
    key: undefined,
    model: "",
    calls: [],
    fault: { kind: "unauthenticated", code: undefined },
  },
  {
    ...SERVED,
    id: "x3",
    privacy: "strict",
    labels: {},
    trace: { ...SERVED.trace, parentId: "b7ad6b7169203331", sampled: false },
    outcome: "upstream_error",
    calls: [{ ...SERVED.calls[0]!, protocol: null, state: "unpriced", costNano: null, usage: {} }],
  },
  { ...SERVED, id: "x4", ...({ colour: "blue", kind: "smell" } as object) },
];

/** With a head that was read, without one, and with what this contract does not know. */
const REFUSALS: readonly TurnedAway[] = [
  { at: 1, id: "y1", status: 404, code: "unknown_path", method: "GET", listener: "clients" },
  { at: 1, id: "y2", status: 400, code: "tls", listener: "admin" },
  {
    at: 1,
    id: "y3",
    status: 418,
    code: "teapot",
    method: "BREW",
    listener: "window" as "admin",
    ...({ colour: "blue" } as object),
  },
];

const BILL: LedgerLine = {
  at: 1795000000000,
  type: "settle",
  attempt: "x1-1",
  call: {
    request: "x1",
    n: 1,
    key: "k1",
    labels: { team: "web" },
    privacy: "off",
    target: {
      provider: "acme",
      model: "m",
      protocol: "chat-completions",
      credential: "default",
    },
    limits: [
      {
        scope: "key:k1",
        unit: "nano_usd",
        per: "month",
        max: 100n,
        left: 19n,
        resetsAt: 1795000000001,
      },
    ],
  },
  state: "exact",
  usage: { input: 20, output: 7 },
  costNano: 140n,
  outcome: "ok",
  finish: "stop",
  ms: { head: 80, content: 90, total: 400 },
};

/** Unpriced, of a call that was open before, a correction, and with what this contract does not know. */
const BILLS: readonly LedgerLine[] = [
  BILL,
  { ...BILL, attempt: "x2-1", state: "unpriced", costNano: null, usage: {}, ms: undefined },
  { ...BILL, attempt: "x3-1", call: undefined, state: "estimated", outcome: "presumed" },
  { ...BILL, type: "adjust", call: undefined, usage: {}, costNano: -40n, outcome: "goodwill" },
  { ...BILL, attempt: "x4-1", ...({ colour: "blue", outcome: "smell" } as object) },
];

const NOTICES: readonly Notice[] = [
  { type: "reload_asked", at: 1, why: "signal" },
  { type: "reloaded", at: 1, why: "file", ok: false, generation: 1 },
  {
    type: "rests",
    at: 1,
    provider: "acme",
    credential: "default",
    model: null,
    kind: "overloaded",
    until: 2,
  },
  { type: "recovered", at: 1, provider: "acme", credential: "default", model: "m" },
  {
    type: "budget_crossed",
    at: 1,
    scope: "key:k1",
    unit: "nano_usd",
    per: "month",
    percent: 80,
    used: 81n,
    max: 100n,
    resetsAt: 2,
  },
  { type: "key", at: 1, change: "made", key: "k1" },
  { type: "ledger", at: 1, ok: false },
  { type: "worker_gone", at: 1, worker: 1, pid: 2, how: "SIGKILL", calls: 0 },
  { type: "dropped", at: 1, records: 3 },
  {
    type: "quarantined",
    at: 1,
    plugin: "middleware.guard",
    hook: "rewrite",
    why: "threw",
    until: 2,
    failures: 5,
  },
  { type: "released", at: 1, plugin: "middleware.guard", hook: "rewrite" },
  { type: "weather", at: 1 } as unknown as Notice,
];

/** Whatever it sends to is not there. */
const END_MS = 5_000;

/**
 * The laws of an observer: it takes every record and every notice, also those that are newer than it, and changes
 * none.
 */
export function observer(subject: Subject): Check[] {
  const each = running<Observer>(subject);
  return [
    each("seen: takes every kind of record, and changes none", async (it) => {
      for (const batch of [RECORDS, ...RECORDS.map((one) => [one])]) await it.seen?.(freeze(batch));
    }),
    each("turnedAway: takes every kind of refusal, and changes none", async (it) => {
      for (const batch of [REFUSALS, ...REFUSALS.map((one) => [one])])
        await it.turnedAway?.(freeze(batch));
    }),
    each(
      "end: after all of it, with nothing before it, and in the time that it has",
      async (it) => {
        await it.seen?.(freeze(RECORDS));
        const began = performance.now();
        await it.end?.();
        assert.ok(
          performance.now() - began < END_MS,
          "it takes longer to end than it is waited for",
        );
      },
    ),
    each("billed: takes every kind of bill, and changes none", async (it) => {
      for (const batch of [BILLS, ...BILLS.map((one) => [one])]) await it.billed?.(freeze(batch));
    }),
    each("its routes are well-formed", ({ routes = [] }) => {
      wellFormed(routes);
      for (const { on } of routes as readonly { on?: unknown }[])
        assert.notEqual(on, "public", "what an observer knows is not the clients'");
    }),
    each("told: takes every kind of notice, unknown ones too", async (it) => {
      for (const notice of NOTICES) await it.told?.(freeze(notice));
    }),
  ];
}
