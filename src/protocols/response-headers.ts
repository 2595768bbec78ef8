/**
 * What of an upstream's answer head reaches a client, in any mode of any protocol. Not its rate limits, not its names for
 * organizations and projects: those are the operator's account, and the client has limits of its own. How long to wait is not
 * passed either: the gateway says it itself, in numbers, whatever the provider wrote.
 */
export const FORWARDED_RESPONSE_HEADERS: readonly string[] = [
  "openai-processing-ms",
  "openai-version",
  "x-should-retry",
];
