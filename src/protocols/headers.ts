/**
 * What of an upstream's answer head reaches a client, on any lane of any protocol. Not its rate limits, not its names for
 * organizations and projects: those are the operator's account, and the client has limits of its own.
 */
export const ANSWER_HEADERS: readonly string[] = [
  "openai-processing-ms",
  "openai-version",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
];
