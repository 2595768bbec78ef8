/**
 * Headers of a provider's response that are forwarded to the client, in any mode of any protocol.
 * Rate limits and organization or project names are not forwarded, because they belong to the
 * operator's account and the client has its own limits. `retry-after` is not forwarded either: the
 * gateway sends its own value in numbers, whatever the provider wrote.
 */
export const FORWARDED_RESPONSE_HEADERS: readonly string[] = [
  "openai-processing-ms",
  "openai-version",
  "x-should-retry",
];
