// Whether a client tries again by itself, as SDKs say it: what is tried for it here comes on top of that.
import type { HeadersIn } from "../../model/values.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { HostExchange } from "./exchange.ts";

/** SDKs count their own retries in these. */
const RETRY_COUNT_HEADERS = [
  "x-stainless-retry-count",
  "x-retry-count",
  "x-retry-attempt",
] as const;
/** "attempt=2; max=4" */
const REPEATED_ATTEMPT = /(?:^|;)\s*attempt=([2-9]|\d{2,6})\s*(?:;|$)/;

/** Whose requests are one client's: those of its key. Without keys, all are. */
export const clientKey = (x: { readonly identity: Identity | undefined }): string =>
  x.identity?.id ?? "";

export const isClientRetry = (x: HostExchange): boolean => hasRetryHeader(x["~"].req.headers);

export function hasRetryHeader(headers: HeadersIn): boolean {
  for (const name of RETRY_COUNT_HEADERS) if (Number(headers[name]) > 0) return true;
  const said = headers["amz-sdk-request"];
  return typeof said === "string" && said.length < 100 && REPEATED_ATTEMPT.test(said);
}
