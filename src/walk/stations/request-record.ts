import type { CallRecord } from "../../plugin/call.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { Fault } from "../../model/error.ts";
import type { RequestRecord, RequestRecordCall, RequestTrace } from "../../plugin/observer.ts";
import type { HostExchange } from "../exchange.ts";
import { spanOfCall } from "../trace.ts";

const NO_LABELS = Object.freeze({});

/** What observers are told of a request: plain data, and no word of a client or a provider. */
export function seenOf(x: HostExchange, outcome: Outcome): RequestRecord {
  return {
    at: Date.now(),
    id: x.id,
    frontend: x.frontend,
    protocol: x.protocol,
    kind: x.kind,
    op: x.op,
    name: x.name,
    method: x.method,
    model: x.model,
    stream: x.stream,
    lane: outcome.lane,
    status: outcome.status,
    fault: without(outcome.fault),
    finish: outcome.finish,
    cached: outcome.cached,
    key: x.identity?.id,
    account: x["~"].branch?.path,
    labels: labelsOf(x),
    privacy: x.privacy,
    losses: outcome.losses.length,
    bytesOut: outcome.bytesOut,
    ms: outcome.ms,
    trace: x.trace,
    ownMs: ownOf(x),
    calls: outcome.calls.map((call) => callOf(call, x.trace)),
  };
}

/** The labels of its key, and those that hooks have set. */
function labelsOf(x: HostExchange): RequestRecord["labels"] {
  const { labels } = x["~"];
  return labels ? { ...labels, ...x.identity?.labels } : (x.identity?.labels ?? NO_LABELS);
}

const callOf = (
  { n, candidate, state, usage, costNano, fault, ms }: CallRecord,
  trace: RequestTrace,
): RequestRecordCall => ({
  n,
  spanId: spanOfCall(trace, n),
  provider: candidate.provider,
  model: candidate.model,
  credential: candidate.credential,
  protocol: candidate.protocol,
  lane: candidate.lane,
  state,
  usage,
  costNano,
  fault: without(fault),
  ms,
});

const without = (fault: Fault | undefined): RequestRecord["fault"] =>
  fault && { kind: fault.kind, code: fault.code ?? undefined };

/** To the microsecond. A provider that is read on after its client has left may have been waited for longer than the request was. */
function ownOf(x: HostExchange): number {
  const { started, awayMs } = x["~"];
  return Math.max(0, Math.round((performance.now() - started - awayMs) * 1_000) / 1_000);
}
