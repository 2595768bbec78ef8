import type { Json, JsonObject } from "../../../model/values.ts";
import { asObject } from "../../json-values.ts";

/** Nothing when the JSON is no error. Streams end in a list of one. */
export function findErrorBody(json: Json): JsonObject | undefined {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body?.["error"];
  if (typeof error === "string") return { message: error };
  return asObject(error);
}
