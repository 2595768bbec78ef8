// A key's limits as people write them: requests=60/minute, usd=2.50/day, concurrent=4.
import { formatDecimal, parseDecimal } from "../money/decimal.ts";
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import type { Limit } from "../plugin/limit.ts";

const FORM =
  /^(requests|concurrent|tokens|input|output|images|usd)=(\d{1,15}(?:\.\d{1,9})?)(?:\/(minute|hour|day|week|month|total))?$/;

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
