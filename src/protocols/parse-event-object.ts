// Parses the data of a provider's stream event, which is a JSON object in every protocol. Any other
// value aborts the response.
import { fail } from "../model/error.ts";
import type { JsonObject } from "../model/values.ts";
import { parseObject } from "./json-values.ts";

export const parseEventObject = (data: string): JsonObject =>
  parseObject(data) ??
  fail("upstream", "The provider's stream contains an event that is not a JSON object.", {
    code: "bad_stream",
  });
