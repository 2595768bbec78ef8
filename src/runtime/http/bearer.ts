import { fail } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";

/** Returns the secret of a request, for frontends without their own rule. */
export function readBearerToken(headers: HeadersIn): string | undefined {
  const authorization = headers.authorization;
  if (authorization === undefined) {
    if (headers["x-api-key"] !== undefined)
      fail("unauthenticated", "Send the key as Authorization: Bearer <key>, not as x-api-key.", {
        code: "invalid_api_key",
      });
    return undefined;
  }
  const [, secret] = /^Bearer +([^\s]+) *$/i.exec(authorization) ?? [];
  return (
    secret ??
    fail("unauthenticated", "The Authorization header must be: Bearer <key>.", {
      code: "invalid_api_key",
    })
  );
}
