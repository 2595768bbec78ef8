import type { RequestRecord, TurnedAway, Unit } from "tollgate/plugin";
import { Alike } from "../alike.ts";
import { COUNTS, DOOR, FIELDS, type FieldName, type FieldValue, OWN, usageOf } from "./fields.ts";
import { bare, named, quoted } from "./text.ts";

/** One request as one line, its end included. */
export type Line<R = RequestRecord> = (record: R, rate: number) => string;

type Format = "json" | "logfmt";
/** Text of these fields, each with what stands before it. */
type Text<R> = (record: R) => string;
type Fields<R> = readonly (readonly [FieldName, (record: R) => FieldValue])[];

/** `rate`: of requests like this one so many are written; said where it is not all. */
export function lines(format: Format, names: readonly FieldName[]): Line {
  const runs = runsOf(names).map(({ of, fields }) => ({
    isOwn: of !== "alike",
    text:
      of === "counts"
        ? counts(format, fields as Unit[])
        : text(
            format,
            fields.map((name) => [name, FIELDS[name]] as const),
          ),
  }));
  // Of each run that is alike, by its place.
  const alike = new Alike((): string[] => []);
  return (record, rate) => {
    const kept = alike.of(record);
    let line = "";
    for (let i = 0; i < runs.length; i++) {
      const { isOwn, text: of } = runs[i]!;
      const said = isOwn || !kept ? of(record) : (kept[i] ??= of(record));
      line = joined(line, said);
    }
    return whole(format, line, rate);
  };
}

/** The same of what the door refused: of these fields those that are known of it. */
export function doorLines(format: Format, names: readonly FieldName[]): Line<TurnedAway> {
  const fields = names.flatMap((name) => {
    const of = DOOR[name];
    return of ? [[name, of] as const] : [];
  });
  const of = text(format, fields);
  return (refusal, rate) => whole(format, joined("", of(refusal)), rate);
}

interface FieldRun {
  /** `own`: no two requests are alike in them. */
  readonly of: "own" | "counts" | "alike";
  readonly fields: FieldName[];
}

function runsOf(names: readonly FieldName[]): readonly FieldRun[] {
  const runs: FieldRun[] = [];
  for (const name of names) {
    const of = COUNTS.has(name) ? "counts" : OWN.has(name) ? "own" : "alike";
    const last = runs.at(-1);
    if (last?.of === of) last.fields.push(name);
    else runs.push({ of, fields: [name] });
  }
  return runs;
}

/** Each looked for in what was used, which is found once for all of them. */
function counts(format: Format, units: readonly Unit[]): Text<RequestRecord> {
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

function whole(format: Format, fields: string, rate: number): string {
  if (format === "json") return `{${rate < 1 ? joined(fields, `,"rate":${rate}`) : fields}}\n`;
  return `${rate < 1 ? joined(fields, ` rate=${rate}`) : fields}\n`;
}

/** Nothing stands before a line's first field. */
const joined = (line: string, more: string): string => (line === "" ? more.slice(1) : line + more);

const text = <R>(format: Format, fields: Fields<R>): Text<R> =>
  format === "json" ? asJson(fields) : asLogfmt(fields);

function asJson<R>(all: Fields<R>): Text<R> {
  const fields = all.map(([name, of]) => ({ key: `,"${name}":`, of }));
  return (record) => {
    let line = "";
    for (let i = 0; i < fields.length; i++) {
      const { key, of } = fields[i]!;
      const value = of(record);
      if (value !== undefined) line += key + json(value);
    }
    return line;
  };
}

function json(value: NonNullable<FieldValue>): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object") return String(value);
  const members = Object.entries(value).map(
    ([name, one]) => `${quoted(name)}:${quoted(one as string)}`,
  );
  return `{${members.join(",")}}`;
}

function asLogfmt<R>(fields: Fields<R>): Text<R> {
  return (record) => {
    let line = "";
    for (const [name, of] of fields) {
      const value = of(record);
      if (typeof value === "object")
        for (const [label, one] of Object.entries(value))
          line += ` label.${named(label)}=${bare(one as string)}`;
      else if (value !== undefined)
        line += ` ${name}=${typeof value === "string" ? bare(value) : value}`;
    }
    return line;
  };
}
