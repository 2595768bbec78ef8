// Calls that a plugin makes itself on behalf of a request, such as calls of tools. They have the
// same rows, limits, and records as calls of models.
import { wallClock } from "../lib/time/wall-clock.ts";
import { fail, type ErrorKind } from "../model/error.ts";
import type { Price } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import { calculateCost } from "../money/price.ts";
import type { CallRecord } from "../plugin/call.ts";
import type { OpenCall, OpenCallOptions, OpenCallResult } from "../plugin/store/open-call.ts";
import type { Limit } from "../plugin/store/limit.ts";
import { HostCall, recordSentCall } from "./exchange/call.ts";
import { HostExchange } from "./exchange/exchange.ts";
import type { HostCandidate } from "./exchange/mounted.ts";
import { collectCharges, reserveRow } from "./metering/charges.ts";
import { waitForRow, writeSettleRow } from "./metering/settle-call.ts";
import { addProviderWait } from "./targets/timeouts.ts";

/** Usage of one call. */
const ONE_RUN: Usage = { tool_runs: 1 };
/** Price of a call that costs nothing. */
const FREE: Price = { lines: [] };
const MAX_NAME_LENGTH = 256;

/** Reserves a call. Throws the error for the client if a limit or the privacy rejects it. */
export async function openCall(options: OpenCallOptions): Promise<OpenCall> {
  const x = options.parentRequest;
  if (!(x instanceof HostExchange)) return fail("internal", "parentRequest must be a request.");
  if (!x.identity) return fail("internal", "The client of the request is not identified.");
  if (x.privacy !== "off" && options.hasZeroRetention !== true)
    return fail(
      "privacy",
      `${options.provider} is not known to have zero data retention, which this request requires.`,
      { code: "zdr_unavailable" },
    );
  const calls = (x.state.calls.opened ??= { open: new Set(), count: 0 });
  const usage = options.usage ?? ONE_RUN;
  const price = options.price ?? FREE;
  const call = new HostCall(x, createCandidate(options, price), ++calls.count);
  x.state.calls.last = call;
  await reserve(call, { usage, price, argumentsHash: options.argumentsHash ?? undefined });
  const open = new HostOpenCall(call, { usage, price, open: calls.open });
  calls.open.add(open);
  if (x.state.connection.isDisconnected) {
    await open.settle({ outcome: "canceled", state: "void" });
    return fail("canceled", "The client disconnected.");
  }
  recordSentCall(call);
  return open;
}

/**
 * Settles the calls that the plugin left open when the request ended. Returns a promise only if there
 * are any.
 */
export function settleOpenCalls(x: HostExchange): Promise<unknown> | undefined {
  const left = x.state.calls.opened?.open;
  if (!left || left.size === 0) return undefined;
  const outcome: ErrorKind = x.state.connection.isDisconnected ? "canceled" : "internal";
  return Promise.all([...left].map((call) => call.settle({ outcome, state: "estimated" })));
}

function reserve(
  call: HostCall,
  of: {
    readonly usage: Usage;
    readonly price: Price;
    readonly argumentsHash: string | undefined;
  },
): Promise<void> {
  const at = wallClock();
  const { limits, labels, budgetMode } = collectCharges(call);
  const hold = costOf(of.usage, of.price, at);
  const amountOf = (unit: Limit["unit"]): bigint => {
    if (unit === "requests" || unit === "concurrent" || unit === "calls") return 1n;
    if (unit === "nano_usd") return budgetMode === "soft" ? 0n : hold;
    return 0n;
  };
  const claims = limits.map((limit) => ({ ...limit, take: amountOf(limit.unit) }));
  const { argumentsHash } = of;
  return reserveRow(call, { at, labels, claims, holdNano: hold, price: of.price, argumentsHash });
}

/** Returns the cost. A unit without a price costs nothing. */
const costOf = (usage: Usage, price: Price, at: number): bigint =>
  price === FREE ? 0n : (calculateCost(usage, price, { at }) ?? 0n);

class HostOpenCall implements OpenCall {
  readonly id: string;
  readonly #call: HostCall;
  readonly #usage: Usage;
  readonly #price: Price;
  readonly #pricedAt = wallClock();
  readonly #open: Set<OpenCall>;
  #row: Promise<void> | undefined;

  constructor(
    call: HostCall,
    of: { readonly usage: Usage; readonly price: Price; readonly open: Set<OpenCall> },
  ) {
    this.id = call.attemptId;
    this.#call = call;
    this.#usage = of.usage;
    this.#price = of.price;
    this.#open = of.open;
  }

  settle(result: OpenCallResult): Promise<void> {
    return (this.#row ??= waitForRow(this.#settle(result)));
  }

  #settle({ outcome, state, usage: used, upstreamId, headersMs }: OpenCallResult): Promise<void> {
    const call = this.#call;
    this.#open.delete(this);
    const now = performance.now();
    addProviderWait(call.exchange, call.startedAt, now);
    const usage = state === "void" ? {} : (used ?? this.#usage);
    const costNano = state === "void" ? 0n : costOf(usage, this.#price, this.#pricedAt);
    const total = Math.round(now - call.startedAt);
    const ms = { ...(headersMs != null && { headers: Math.round(headersMs) }), total };
    const id = upstreamId?.slice(0, MAX_NAME_LENGTH);
    const record: CallRecord = {
      attemptId: call.attemptId,
      n: call.n,
      candidate: call.candidate,
      state,
      usage,
      costNano,
      ...(outcome !== "ok" && { fault: { kind: outcome, message: "" } }),
      startMs: call.startMs,
      ms,
    };
    call.exchange.state.billing.records.push(record);
    return writeSettleRow(
      call,
      {
        do: "settle",
        at: wallClock(),
        attempt: call.attemptId,
        state,
        usage,
        costNano,
        outcome,
        ms,
        ...(id !== undefined && { upstreamId: id }),
      },
      [],
    );
  }
}

/** Creates the candidate of a call, as hooks and observers see it. It has no endpoint. */
function createCandidate(
  { provider, model, protocol, credential }: OpenCallOptions,
  price: Price,
): HostCandidate {
  if (provider.length > MAX_NAME_LENGTH || model.length > MAX_NAME_LENGTH)
    return fail("internal", `Names of calls have at most ${MAX_NAME_LENGTH} characters.`);
  return {
    id: `${provider}/${model}`,
    provider,
    protocol,
    mode: "passthrough",
    model,
    info: { model, operation: "chat", price },
    credential: credential ?? "default",
    policy: {
      retention: { kind: "unknown" },
      trains: "unknown",
      basis: "unknown",
      reasons: [],
    },
    weight: 1,
    cooldown: undefined,
    mounted: {
      endpoint: { definition: {} },
      credential: { name: credential ?? "default", fields: {} },
    } as never,
  };
}
