// Differences between backends that use this protocol. A dialect is plain data, so a provider can
// be defined without code. Default for every field: the behavior of OpenAI.

export interface ModerationDialect {
  /** Whether the backend accepts text only. Default: text and images. */
  textOnly?: boolean;
}
