// A key's limits as people write them: requests=60/minute, usd=2.50/day, concurrent=4.
import { formatDecimal, parseDecimal } from "../money/decimal.ts";
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import type { Limit, LimitCount } from "../plugin/limit.ts";
import { moment } from "./terminal.ts";

const FORM =
  /^(requests|concurrent|tokens|input|output|images|searches|characters|seconds|usd)=(\d{1,15}(?:\.\d{1,9})?)(?:\/(minute|hour|day|week|month|total))?$/;

export function parseLimit(text: string): JsonObject {
  const [, unit, amount = "", per] = FORM.exec(text) ?? [];
  const right =
    unit === "usd"
      ? per !== undefined
      : !amount.includes(".") && (unit === "concurrent") === (per === undefined);
  if (unit === undefined || !right)
    return fail(
      "invalid",
      `--limit is like requests=60/minute, tokens=1000000/day, usd=5/month or concurrent=4, not "${text}".`,
      { code: "usage" },
    );
  return unit === "usd"
    ? { unit: "nano_usd", max: Number(parseDecimal(amount, 9)), per }
    : { unit, max: Number(amount), per: per ?? "open" };
}

export function sayLimit({ unit, max, per }: Pick<Limit, "unit" | "max" | "per">): string {
  if (unit === "concurrent") return `concurrent=${max}`;
  if (unit !== "nano_usd") return `${unit}=${max}/${per}`;
  return `usd=${formatDecimal(BigInt(max), 9)}/${per}`;
}

/** Amounts come over the socket as decimal text. */
export type SaidCount = Omit<LimitCount, "used" | "held" | "left" | "max"> & {
  readonly [amount in "used" | "held" | "left" | "max"]: string | number | bigint;
};

/** "usd 4.20 of 5/month left, 0.30 held, back 2026-12-01 00:00". */
export function sayCount({ unit, per, max, left, held, resetsAt }: SaidCount): string {
  const amount = (of: SaidCount["left"]) =>
    unit === "nano_usd" ? formatDecimal(BigInt(of), 9) : `${of}`;
  const name = unit === "nano_usd" ? "usd" : unit;
  const span = per === "open" ? "" : `/${per}`;
  const holding = BigInt(held) > 0n ? `, ${amount(held)} held` : "";
  const back = per === "open" || per === "total" ? "" : `, back ${moment(resetsAt)}`;
  return `${name} ${amount(left)} of ${amount(max)}${span} left${holding}${back}`;
}
