// The fields of an access log line, in the order in which a line with all fields lists them. If the
// ledger has the same field, the names are the same.
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
import { TemplateCache } from "../template-cache.ts";

/** Undefined if the value is unknown or does not apply. The line then omits the field. */
export type FieldValue = string | number | true | undefined | RequestRecord["labels"];
export type FieldReader = (record: RequestRecord) => FieldValue;

/** Maximum number of characters of a model name. */
const MAX_MODEL_LENGTH = 256;
const MAX_LABEL_LENGTH = 64;

let cachedSecond = NaN;
let cachedSecondText = "";

/**
 * Formats the time. The text of the current second is cached, because thousands of lines per second
 * share it.
 */
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

/** Returns the usage of all attempts together, as the ledger records it for this request. */
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

/** Whether a candidate other than the first candidate served the request. */
function usedFallback({ served, calls }: RequestRecord): boolean {
  const [first, end] = [calls[0], calls.at(-1)];
  if (served === undefined || !first || !end) return false;
  return (
    first.provider !== end.provider ||
    first.model !== end.model ||
    first.credential !== end.credential
  );
}

/**
 * Returns the first hook that did more than delay the request, for example
 * "middleware.guard.inspect".
 */
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
  session: ({ session }) => session ?? undefined,
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

/** Usage fields. Most requests have only a few of them. */
export const UNIT_FIELDS: ReadonlySet<FieldName> = new Set(UNITS);

/** Fields whose values differ even between similar requests. */
export const UNIQUE_FIELDS: ReadonlySet<FieldName> = new Set([
  "time",
  "id",
  "client_id",
  "session",
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

/** Fields of a request that was rejected before routing, so that no frontend received it. */
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

/**
 * Returns "refused" for too many requests (429), a wrong host (421), or a forbidden request (403).
 * Other statuses below 500 are client errors, and the rest are errors.
 */
export function rejectionOutcome({ status }: RejectedRequest): RequestOutcome {
  if (status === 421 || status === 429 || status === 403) return "refused";
  return status < 500 ? "client_error" : "error";
}

// Escapes untrusted text for a log line. Escaped text cannot end the line, control a terminal, or
// reverse the reading direction of neighboring text.

/** Matches text that needs no escaping. */
const NO_ESCAPES = /^[ !#-[\]-~]*$/;
/** Matches text that needs no quotes in logfmt either. */
const NO_QUOTES = /^[!#-<>-[\]-~]+$/;
/**
 * Characters that JSON allows unescaped but that a reader may misinterpret: controls, Unicode line
 * ends, and marks that change the text direction.
 */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Shortens text to a maximum number of characters. */
const truncate = (text: string, most: number): string =>
  text.length > most ? text.slice(0, most) : text;

export const quote = (text: string): string =>
  NO_ESCAPES.test(text)
    ? `"${text}"`
    : JSON.stringify(text).replace(UNSAFE_CHARACTERS, escapeCharacter);

export const quoteIfNeeded = (text: string): string => (NO_QUOTES.test(text) ? text : quote(text));

/** Escapes each UTF-16 code unit. A character beyond the first Unicode plane has two of them. */
function escapeCharacter(character: string): string {
  let out = "";
  for (let i = 0; i < character.length; i++)
    out += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return out;
}

/** Escapes a part of a logfmt key. Different names always give different keys. */
export const toLogfmtKey = (name: string): string =>
  /^[\w.-]+$/.test(name)
    ? name
    : Array.from(Buffer.from(name), (byte) =>
        /[\w.-]/.test(String.fromCharCode(byte))
          ? String.fromCharCode(byte)
          : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
      ).join("");

/** Formats one request as one line, including the line end. */
type LineWriter<R = RequestRecord> = (record: R, rate: number) => string;

type Format = "json" | "logfmt";
/** Formats some fields, each preceded by its separator. */
type FieldsWriter<R> = (record: R) => string;
type FieldReaders<R> = readonly (readonly [FieldName, (record: R) => FieldValue])[];

/**
 * Creates the formatter of request lines. Its `rate` is the share of such requests that are logged.
 * A line includes the rate if it is below 1.
 */
export function createLineWriter(format: Format, names: readonly FieldName[]): LineWriter {
  const runs = splitIntoRuns(names).map(({ kind, fields }) => ({
    isUnique: kind !== "cached",
    text:
      kind === "units"
        ? createUnitsWriter(format, fields as Unit[])
        : createFieldsWriter(
            format,
            fields.map((name) => [name, FIELDS[name]] as const),
          ),
  }));
  // Cached text of each cacheable run of fields, by the run's position.
  const alike = new TemplateCache((): string[] => []);
  return (record, rate) => {
    const kept = alike.get(record);
    let line = "";
    for (let i = 0; i < runs.length; i++) {
      const { isUnique, text: of } = runs[i]!;
      const fieldsText = isUnique || !kept ? of(record) : (kept[i] ??= of(record));
      line = joinFields(line, fieldsText);
    }
    return finishLine(format, line, rate);
  };
}

/**
 * Creates the formatter for requests that were rejected before routing. Fields that are unknown for
 * them are omitted.
 */
export function createRejectedLineWriter(
  format: Format,
  names: readonly FieldName[],
): LineWriter<RejectedRequest> {
  const fields = names.flatMap((name) => {
    const of = REJECTED_FIELDS[name];
    return of ? [[name, of] as const] : [];
  });
  const of = createFieldsWriter(format, fields);
  return (refusal, rate) => finishLine(format, joinFields("", of(refusal)), rate);
}

interface FieldRun {
  /** `unique`: fields that differ between any two requests. */
  readonly kind: "unique" | "units" | "cached";
  readonly fields: FieldName[];
}

function splitIntoRuns(names: readonly FieldName[]): readonly FieldRun[] {
  const runs: FieldRun[] = [];
  for (const name of names) {
    const of = UNIT_FIELDS.has(name) ? "units" : UNIQUE_FIELDS.has(name) ? "unique" : "cached";
    const last = runs.at(-1);
    if (last?.kind === of) last.fields.push(name);
    else runs.push({ kind: of, fields: [name] });
  }
  return runs;
}

/** Creates a formatter for usage fields that computes the request's usage only once. */
function createUnitsWriter(format: Format, units: readonly Unit[]): FieldsWriter<RequestRecord> {
  const keys = units.map((unit) => (format === "json" ? `,"${unit}":` : ` ${unit}=`));
  return (record) => {
    const usage = usageOf(record);
    let line = "";
    for (let i = 0; i < units.length; i++) {
      const count = usage[units[i]!];
      if (count !== undefined) line += keys[i]! + count;
    }
    return line;
  };
}

function finishLine(format: Format, fields: string, rate: number): string {
  if (format === "json") return `{${rate < 1 ? joinFields(fields, `,"rate":${rate}`) : fields}}\n`;
  return `${rate < 1 ? joinFields(fields, ` rate=${rate}`) : fields}\n`;
}

/** Joins fields without a separator before the first field. */
const joinFields = (line: string, more: string): string =>
  line === "" ? more.slice(1) : line + more;

const createFieldsWriter = <R>(format: Format, fields: FieldReaders<R>): FieldsWriter<R> =>
  format === "json" ? createJsonWriter(fields) : createLogfmtWriter(fields);

function createJsonWriter<R>(all: FieldReaders<R>): FieldsWriter<R> {
  const fields = all.map(([name, of]) => ({ key: `,"${name}":`, of }));
  return (record) => {
    let line = "";
    for (let i = 0; i < fields.length; i++) {
      const { key, of } = fields[i]!;
      const value = of(record);
      if (value !== undefined) line += key + toJsonValue(value);
    }
    return line;
  };
}

function toJsonValue(value: NonNullable<FieldValue>): string {
  if (typeof value === "string") return quote(value);
  if (typeof value !== "object") return String(value);
  const members = Object.entries(value).map(
    ([name, one]) => `${quote(name)}:${quote(one as string)}`,
  );
  return `{${members.join(",")}}`;
}

function createLogfmtWriter<R>(fields: FieldReaders<R>): FieldsWriter<R> {
  return (record) => {
    let line = "";
    for (const [name, of] of fields) {
      const value = of(record);
      if (typeof value === "object")
        for (const [label, one] of Object.entries(value))
          line += ` label.${toLogfmtKey(label)}=${quoteIfNeeded(one as string)}`;
      else if (value !== undefined)
        line += ` ${name}=${typeof value === "string" ? quoteIfNeeded(value) : value}`;
    }
    return line;
  };
}
