// What a command is given, as it must be.
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";

export function number(input: JsonObject, name: string): number | undefined {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  return Number.isSafeInteger(value) && Number(value) >= 0
    ? Number(value)
    : fail("invalid", `${name} is a whole number.`, { param: name });
}
