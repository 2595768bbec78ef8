// Differences between backends that use this protocol. A dialect is plain data, so a provider can
// be defined without code. Default for every field: the behavior of OpenAI.

export interface TranscriptDialect {
  /**
   * Response formats that each model supports. The first entry that matches the model applies, and
   * one `*` in a pattern of `of` matches any text. A client receives its requested format if a
   * supported one contains the necessary data.
   *
   * `false`: all models respond with JSON that has segments, and there is no format field. If
   * unset, support is unknown and the client's own choice is forwarded.
   */
  formats?: readonly { of: readonly string[]; formats: readonly string[] }[] | false;
  /** Whether the backend supports translation. Default: true. */
  translates?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}
