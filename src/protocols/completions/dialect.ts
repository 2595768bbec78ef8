// Describes how backends that speak this protocol differ. It is plain data, so that a provider can
// be a row. Unset options mean the behavior of OpenAI's own API.

export interface CompletionDialect {
  /** Whether the backend supports `stream_options.include_usage`. Default: supported. */
  streamUsage?: "include_usage" | "none";
  /**
   * Top-level fields that the backend rejects with an error. They are dropped, and the client
   * receives a warning.
   */
  dropFields?: readonly string[];
}
