// What an event of an upstream's stream holds: a JSON object, on every wire. Anything else breaks the answer off.
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import { parseObject } from "./json-values.ts";

export const parseEventObject = (data: string): JsonObject =>
  parseObject(data) ??
  fail("upstream", "An event of the provider's stream is not a JSON object.", {
    code: "bad_stream",
  });
