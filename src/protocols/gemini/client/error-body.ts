import type { Json, JsonObject } from "../../../model/values.ts";
import { asObject } from "../../json-values.ts";

/**
 * Returns the error in a JSON value, or undefined if it is not an error. In a stream, an error can
 * be a list with one element.
 */
export function findErrorBody(json: Json): JsonObject | undefined {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body?.["error"];
  if (typeof error === "string") return { message: error };
  return asObject(error);
}
