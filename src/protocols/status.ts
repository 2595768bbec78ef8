import type { ErrorKind } from "../plugin/index.ts";

/** What a provider's status means, where its words do not say more. */
export const BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  403: "upstream_auth",
  404: "not_found",
  408: "timeout",
  409: "conflict",
  413: "too_large",
  422: "invalid",
  429: "rate_limited",
  503: "overloaded",
  504: "timeout",
  529: "overloaded",
};
