// Checks of an observer: it must accept all records, including records of a later gateway, without
// changing them and without failing.
import assert from "node:assert/strict";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type {
  ChargeRecord,
  Observer,
  RequestRecord,
  RejectedRequest,
} from "../../plugin/observer.ts";
import { type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkRoutes } from "./frontend.ts";
import type { ConformanceSubject } from "./subject.ts";

const SERVED_RECORD: RequestRecord = {
  at: 1795000000000,
  id: "x1",
  clientRequestId: "client-1",
  worker: 0,
  generation: 1,
  outcome: "ok",
  frontend: "chat-completions",
  protocol: "chat-completions",
  operation: "chat",
  actionType: "generate",
  action: "generate",
  method: "POST",
  route: "/v1/chat/completions",
  model: "fast",
  alias: "fast",
  served: "acme/m",
  isPinned: false,
  skippedCandidates: [
    { candidate: "dear/m", credential: "default", by: "cooldown", code: "overloaded" },
  ],
  stream: true,
  mode: "passthrough",
  status: 200,
  finish: "stop",
  cached: false,
  key: "k1",
  labels: { team: "web" },
  privacy: "off",
  zdrReceipt: "acme/chat-completions;retention=none",
  client: "192.0.2.0/24",
  losses: 1,
  lossCodes: { dropped: 1 },
  bytesIn: 256,
  bytesOut: 512,
  ms: 420,
  firstTokenMs: 95,
  trace: { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" },
  overheadMs: 1.25,
  calls: [
    {
      n: 1,
      spanId: "00f067aa0ba902b8",
      startMs: 5,
      provider: "acme",
      model: "m",
      credential: "default",
      protocol: "chat-completions",
      mode: "passthrough",
      transport: "websocket",
      state: "exact",
      usage: { input: 20, output: 7 },
      costNano: 140n,
      ms: { headers: 80, firstToken: 90, total: 400 },
    },
  ],
};

/**
 * A rejected request (before a provider was called), an unpriced request, a private request, and a
 * request with members that are not in this contract.
 */
const RECORDS: readonly RequestRecord[] = [
  SERVED_RECORD,
  {
    ...SERVED_RECORD,
    id: "x2",
    status: 401,
    outcome: "refused",
    clientRequestId: undefined,
    alias: undefined,
    served: undefined,
    skippedCandidates: undefined,
    firstTokenMs: undefined,
    client: undefined,
    mode: null,
    key: undefined,
    model: "",
    calls: [],
    fault: { kind: "unauthenticated", code: undefined },
  },
  {
    ...SERVED_RECORD,
    id: "x3",
    privacy: "strict",
    labels: {},
    trace: { ...SERVED_RECORD.trace, parentId: "b7ad6b7169203331", sampled: false },
    outcome: "upstream_error",
    calls: [
      { ...SERVED_RECORD.calls[0]!, protocol: null, state: "unpriced", costNano: null, usage: {} },
    ],
  },
  { ...SERVED_RECORD, id: "x4", ...({ colour: "blue", kind: "smell" } as object) },
];

/**
 * A rejection with a request head, one without, and one with members that this contract does not
 * have.
 */
const REJECTIONS: readonly RejectedRequest[] = [
  { at: 1, id: "y1", status: 404, code: "unknown_path", method: "GET", listener: "public" },
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

const CHARGE: ChargeRecord = {
  at: 1795000000000,
  type: "settle",
  attempt: "x1-1",
  call: {
    request: "x1",
    number: 1,
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
        remaining: 19n,
        resetsAt: 1795000000001,
      },
    ],
  },
  state: "exact",
  usage: { input: 20, output: 7 },
  costNano: 140n,
  outcome: "ok",
  finish: "stop",
  ms: { headers: 80, firstToken: 90, total: 400 },
};

/**
 * An unpriced charge, one of a call that was open before, a correction, and one with members that
 * this contract does not have.
 */
const CHARGES: readonly ChargeRecord[] = [
  CHARGE,
  { ...CHARGE, attempt: "x2-1", state: "unpriced", costNano: null, usage: {}, ms: undefined },
  { ...CHARGE, attempt: "x3-1", call: undefined, state: "estimated", outcome: "recovered" },
  { ...CHARGE, type: "adjust", call: undefined, usage: {}, costNano: -40n, outcome: "goodwill" },
  { ...CHARGE, attempt: "x4-1", ...({ colour: "blue", outcome: "smell" } as object) },
];

const EVENTS: readonly GatewayEvent[] = [
  { type: "reload_requested", at: 1, trigger: "signal" },
  { type: "reloaded", at: 1, trigger: "file", ok: false, generation: 1 },
  {
    type: "cooldown_started",
    at: 1,
    provider: "acme",
    credential: "default",
    model: null,
    reason: "overloaded",
    until: 2,
  },
  { type: "cooldown_ended", at: 1, provider: "acme", credential: "default", model: "m" },
  {
    type: "budget_threshold_reached",
    at: 1,
    scope: "key:k1",
    unit: "nano_usd",
    per: "month",
    percent: 80,
    used: 81n,
    max: 100n,
    resetsAt: 2,
  },
  { type: "key", at: 1, change: "created", key: "k1" },
  { type: "ledger", at: 1, ok: false },
  { type: "plugin_event", at: 1, plugin: "observers.x", name: "bill_differs", data: {} },
  {
    type: "budget_exhausts",
    at: 1,
    scope: "key:k1",
    limit: "usd=1/month",
    usedUsd: "0.5",
    maxUsd: "1",
    perDayUsd: "0.25",
    exhaustsAt: 2,
    resetsAt: 3,
  },
  { type: "worker_exited", at: 1, worker: 1, pid: 2, exitReason: "SIGKILL", openCalls: 0 },
  { type: "records_dropped", at: 1, records: 3 },
  {
    type: "job_ended",
    at: 2,
    kind: "batch",
    job: "batch_1",
    status: "completed",
    key: "k1",
    createdAt: 1,
    costUsd: "0.5",
    origin: { request: "r1", trace: { traceId: "0".repeat(32), spanId: "0".repeat(16) } },
  },
  {
    type: "quarantined",
    at: 1,
    plugin: "middleware.guard",
    hook: "rewrite",
    reason: "threw",
    until: 2,
    failures: 5,
  },
  { type: "released", at: 1, plugin: "middleware.guard", hook: "rewrite" },
  { type: "weather", at: 1 } as unknown as GatewayEvent,
];

/**
 * Maximum duration of `flush`, in milliseconds. The server that the observer sends to is
 * unreachable in this check.
 */
const FLUSH_TIMEOUT_MS = 5_000;

/**
 * Returns the checks of an observer: it must accept every record and every event, including newer
 * ones, and change none of them.
 */
export function observerChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Observer>(subject);
  return [
    each("onRequests: accepts every type of record and changes none", async (it) => {
      for (const batch of [RECORDS, ...RECORDS.map((one) => [one])])
        await it.onRequests?.(deepFreeze(batch));
    }),
    each("onRejected: accepts every type of rejection and changes none", async (it) => {
      for (const batch of [REJECTIONS, ...REJECTIONS.map((one) => [one])])
        await it.onRejected?.(deepFreeze(batch));
    }),
    each("flush: runs last, also without earlier calls, and within its time limit", async (it) => {
      await it.onRequests?.(deepFreeze(RECORDS));
      const began = performance.now();
      await it.flush?.();
      assert.ok(performance.now() - began < FLUSH_TIMEOUT_MS, "flush() exceeds its time limit");
    }),
    each("onCharges: accepts every type of charge and changes none", async (it) => {
      for (const batch of [CHARGES, ...CHARGES.map((one) => [one])])
        await it.onCharges?.(deepFreeze(batch));
    }),
    each("its routes are well-formed", ({ routes = [] }) => {
      checkRoutes(routes);
      for (const { listener } of routes as readonly { listener?: unknown }[])
        assert.notEqual(
          listener,
          "public",
          "a route of an observer must not be on the public listener",
        );
    }),
    each(
      "onEvent: accepts every type of event, including unknown ones, and changes none",
      async (it) => {
        for (const notice of EVENTS) await it.onEvent?.(deepFreeze(notice));
      },
    ),
  ];
}
