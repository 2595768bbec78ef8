// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what OpenAI has.

export interface CompletionDialect {
  /** It knows `stream_options.include_usage`. Absent: it does. */
  streamUsage?: "include_usage" | "none";
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}
