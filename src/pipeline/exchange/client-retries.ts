// Detects from headers of SDKs whether a request is a client's own retry. Retries by the gateway
// come in addition to the client's.
import type { HeadersIn } from "../../model/values.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { HostExchange } from "./exchange.ts";

/** Headers in which SDKs count their own retries. */
const RETRY_COUNT_HEADERS = [
  "x-stainless-retry-count",
  "x-retry-count",
  "x-retry-attempt",
] as const;
/** Matches values such as "attempt=2; max=4". */
const REPEATED_ATTEMPT = /(?:^|;)\s*attempt=([2-9]|\d{2,6})\s*(?:;|$)/;

/**
 * Returns the key whose requests count as one client. Without keys, all requests count as one
 * client.
 */
export const clientKey = (x: { readonly identity: Identity | undefined }): string =>
  x.identity?.id ?? "";

export const isClientRetry = (x: HostExchange): boolean =>
  hasRetryHeader(x.state.connection.req.headers);

export function hasRetryHeader(headers: HeadersIn): boolean {
  for (const name of RETRY_COUNT_HEADERS) if (Number(headers[name]) > 0) return true;
  const sdkRequest = headers["amz-sdk-request"];
  return (
    typeof sdkRequest === "string" && sdkRequest.length < 100 && REPEATED_ATTEMPT.test(sdkRequest)
  );
}
