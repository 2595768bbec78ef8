// What a line may say of a request, by name and in the order of a line that says all. Names are the ledger's where it has them.
import {
  UNITS,
  type RequestOutcome,
  type RequestRecord,
  type RequestRecordCall,
  type RejectedRequest,
  type Unit,
  type Usage,
} from "tollgate/plugin";
import { formatUsd } from "../usd.ts";
import { truncate } from "./text-escape.ts";

/** Undefined: not known, or not so; the line leaves it out. */
export type FieldValue = string | number | true | undefined | RequestRecord["labels"];
export type FieldReader = (record: RequestRecord) => FieldValue;

/** Of a model's name, and of a label's name and value. */
const MAX_MODEL_LENGTH = 256;
const MAX_LABEL_LENGTH = 64;

let cachedSecond = NaN;
let cachedSecondText = "";

/** Thousands of lines a second begin alike. */
function formatTime(at: number): string {
  const ms = at % 1_000;
  if (at - ms !== cachedSecond) {
    cachedSecond = at - ms;
    cachedSecondText = new Date(cachedSecond).toISOString().slice(0, -4);
  }
  return `${cachedSecondText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
}

const lastCall = ({ calls }: RequestRecord): RequestRecordCall | undefined => calls.at(-1);
const trueOrOmit = (value: boolean): true | undefined => value || undefined;

/** Over all attempts: what the ledger has of this request. */
export function usageOf({ calls }: RequestRecord): Usage {
  if (calls.length === 1) return calls[0]!.usage;
  const sum: { [U in Unit]?: number } = {};
  for (const { usage } of calls)
    for (const unit of UNITS)
      if (usage[unit] !== undefined) sum[unit] = (sum[unit] ?? 0) + usage[unit];
  return sum;
}

function costUsd({ calls }: RequestRecord): string | undefined {
  let nano: bigint | undefined;
  for (const { costNano } of calls) if (costNano !== null) nano = (nano ?? 0n) + costNano;
  return nano === undefined ? undefined : formatUsd(nano);
}

/** Another candidate than the first one answered. */
function usedFallback({ served, calls }: RequestRecord): boolean {
  const [first, end] = [calls[0], calls.at(-1)];
  if (served === undefined || !first || !end) return false;
  return (
    first.provider !== end.provider ||
    first.model !== end.model ||
    first.credential !== end.credential
  );
}

/** "middleware.guard.inspect": the first that did more than take its time. */
function firstActingHook({ hooks }: RequestRecord): string | undefined {
  const acted = hooks?.find(({ effect }) => effect !== "delayed");
  return acted && `${acted.plugin}.${acted.hook}`;
}

function shortLabels({ labels: all }: RequestRecord): RequestRecord["labels"] | undefined {
  const short: [string, string][] = [];
  for (const name in all) {
    const value = all[name];
    if (value !== undefined)
      short.push([truncate(name, MAX_LABEL_LENGTH), truncate(value, MAX_LABEL_LENGTH)]);
  }
  return short.length > 0 ? Object.fromEntries(short) : undefined;
}

const unitFields = Object.fromEntries(
  UNITS.map((unit): [Unit, FieldReader] => [unit, (record) => usageOf(record)[unit]]),
) as Record<Unit, FieldReader>;

export const FIELDS = {
  time: ({ at }) => formatTime(at),
  id: ({ id }) => id,
  client_id: ({ clientRequestId }) => clientRequestId ?? undefined,
  status: ({ status }) => status,
  outcome: ({ outcome }) => outcome,
  frontend: ({ frontend }) => frontend,
  method: ({ method }) => method,
  route: ({ route }) => route,
  key: ({ key }) => key ?? undefined,
  account: ({ account }) => account ?? undefined,
  labels: shortLabels,
  model: ({ model }) => (model === "" ? undefined : truncate(model, MAX_MODEL_LENGTH)),
  alias: ({ alias }) => alias ?? undefined,
  provider: (record) => lastCall(record)?.provider,
  served_model: ({ served }) => served ?? undefined,
  credential: (record) => lastCall(record)?.credential,
  mode: ({ mode }) => mode ?? undefined,
  stream: ({ stream }) => trueOrOmit(stream),
  attempts: ({ calls }) => calls.length,
  fallback: (record) => trueOrOmit(usedFallback(record)),
  cached: ({ cached }) => trueOrOmit(cached),
  error_kind: ({ fault }) => fault?.kind,
  error_code: ({ fault }) => fault?.code,
  hook: firstActingHook,
  finish_reason: ({ finish }) => finish ?? undefined,
  ...unitFields,
  cost_usd: costUsd,
  unpriced: ({ calls }) => calls.filter(({ costNano }) => costNano === null).length || undefined,
  bill_state: (record) => lastCall(record)?.state,
  translation_warnings: ({ losses }) => losses || undefined,
  ms: ({ ms }) => ms,
  ttft_ms: ({ firstTokenMs }) => firstTokenMs ?? undefined,
  overhead_ms: ({ overheadMs }) => overheadMs,
  bytes_in: ({ bytesIn }) => bytesIn,
  bytes_out: ({ bytesOut }) => bytesOut,
  privacy: ({ privacy }) => privacy,
  worker: ({ worker }) => worker,
  generation: ({ generation }) => generation,
  trace_id: ({ trace }) => trace.traceId,
  client_address: ({ client }) => client ?? undefined,
} as const satisfies Record<string, FieldReader>;

export type FieldName = keyof typeof FIELDS;
export const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

/** Most requests have few of these. */
export const UNIT_FIELDS: ReadonlySet<FieldName> = new Set(UNITS);

/** What no request has alike with another one that is else like it. */
export const UNIQUE_FIELDS: ReadonlySet<FieldName> = new Set([
  "time",
  "id",
  "client_id",
  "labels",
  ...UNITS,
  "cost_usd",
  "ms",
  "ttft_ms",
  "overhead_ms",
  "bytes_in",
  "bytes_out",
  "trace_id",
  "client_address",
]);

/** What is known of a request that the door refused: no frontend saw it. */
export const REJECTED_FIELDS: {
  readonly [N in FieldName]?: (refusal: RejectedRequest) => FieldValue;
} = {
  time: ({ at }) => formatTime(at),
  id: ({ id }) => id,
  status: ({ status }) => status,
  outcome: rejectionOutcome,
  method: ({ method }) => method ?? undefined,
  error_code: ({ code }) => code,
};

/** Too much at once, or the wrong host; else what was sent is at fault, or there is no room for it. */
export function rejectionOutcome({ status }: RejectedRequest): RequestOutcome {
  if (status === 421 || status === 429 || status === 403) return "refused";
  return status < 500 ? "client_error" : "error";
}
