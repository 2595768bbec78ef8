// Shared parts of this package's protocols: the upstream's JSON, its errors, and errors for
// clients.
import { ERRORS, fail, type Fault, type JsonObject } from "tollgate/plugin";

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function parsed(body: string): JsonObject {
  try {
    const said: unknown = JSON.parse(body);
    if (isObject(said)) return said;
  } catch {
    // Said below.
  }
  return fail("upstream", "The provider's answer is not JSON.", { code: "bad_json" });
}

export const refused = (status: number): Fault => ({
  kind: status === 429 ? "rate_limited" : status < 500 ? "invalid" : "upstream",
  message: `The provider answered with ${status}.`,
});

export const told = ({ kind, message, code, param }: Fault) => ({
  status: ERRORS[kind][0],
  body: { error: { message, type: kind, code: code ?? kind, param: param ?? null } },
});
