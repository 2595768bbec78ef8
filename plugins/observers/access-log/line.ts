import type { RequestRecord } from "tollgate/plugin";
import { FIELDS, type Field, type FieldName, type FieldValue } from "./fields.ts";
import { bare, named, quoted } from "./text.ts";

/** One request as one line, its end included. */
export type Line = (record: RequestRecord, rate: number) => string;

/** `rate`: of requests like this one so many are written; said where it is not all. */
export function lines(format: "json" | "logfmt", names: readonly FieldName[]): Line {
  const fields = names.map((name): [FieldName, Field] => [name, FIELDS[name]]);
  return format === "json" ? asJson(fields) : asLogfmt(fields);
}

function asJson(all: readonly [FieldName, Field][]): Line {
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

function asLogfmt(fields: readonly [FieldName, Field][]): Line {
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
