import type { RequestRecord, RejectedRequest, Unit } from "tollgate/plugin";
import { TemplateCache } from "../template-cache.ts";
import {
  UNIT_FIELDS,
  REJECTED_FIELDS,
  FIELDS,
  type FieldName,
  type FieldValue,
  UNIQUE_FIELDS,
  usageOf,
} from "./fields.ts";
import { quoteIfNeeded, toLogfmtKey, quote } from "./text-escape.ts";

/** Formats one request as one line, including the line end. */
export type LineWriter<R = RequestRecord> = (record: R, rate: number) => string;

type Format = "json" | "logfmt";
/** Formats some fields, each preceded by its separator. */
type FieldsWriter<R> = (record: R) => string;
type FieldReaders<R> = readonly (readonly [FieldName, (record: R) => FieldValue])[];

/**
 * Creates the formatter of request lines. Its `rate` is the share of such requests that is logged.
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
      const said = isUnique || !kept ? of(record) : (kept[i] ??= of(record));
      line = joinFields(line, said);
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

/** Joins fields without a separator before the first one. */
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
