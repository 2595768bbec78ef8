import type { RequestRecord, TurnedAway } from "tollgate/plugin";
import { DOOR, FIELDS, type FieldName, type FieldValue } from "./fields.ts";
import { bare, named, quoted } from "./text.ts";

/** One request as one line, its end included. */
export type Line<R = RequestRecord> = (record: R, rate: number) => string;

type Format = "json" | "logfmt";
type Fields<R> = readonly (readonly [FieldName, (record: R) => FieldValue])[];

/** `rate`: of requests like this one so many are written; said where it is not all. */
export const lines = (format: Format, names: readonly FieldName[]): Line =>
  written(
    format,
    names.map((name) => [name, FIELDS[name]] as const),
  );

/** The same of what the door refused: of these fields those that are known of it. */
export const doorLines = (format: Format, names: readonly FieldName[]): Line<TurnedAway> =>
  written(
    format,
    names.flatMap((name) => {
      const of = DOOR[name];
      return of ? [[name, of] as const] : [];
    }),
  );

const written = <R>(format: Format, fields: Fields<R>): Line<R> =>
  format === "json" ? asJson(fields) : asLogfmt(fields);

function asJson<R>(all: Fields<R>): Line<R> {
  const fields = all.map(([name, of]) => ({ key: `"${name}":`, of }));
  return (record, rate) => {
    let line = "";
    for (const { key, of } of fields) {
      const value = of(record);
      if (value !== undefined) line += `${line === "" ? "" : ","}${key}${json(value)}`;
    }
    if (rate < 1) line += `${line === "" ? "" : ","}"rate":${rate}`;
    return `{${line}}\n`;
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

function asLogfmt<R>(fields: Fields<R>): Line<R> {
  return (record, rate) => {
    const parts: string[] = [];
    for (const [name, of] of fields) {
      const value = of(record);
      if (typeof value === "object")
        for (const [label, one] of Object.entries(value))
          parts.push(`label.${named(label)}=${bare(one as string)}`);
      else if (value !== undefined)
        parts.push(`${name}=${typeof value === "string" ? bare(value) : value}`);
    }
    if (rate < 1) parts.push(`rate=${rate}`);
    return `${parts.join(" ")}\n`;
  };
}
