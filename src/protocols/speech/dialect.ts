// Differences between backends that use this protocol. A dialect is plain data, so a provider can
// be defined without code. Default for every field: the behavior of OpenAI.

export interface SpeechDialect {
  /**
   * Models that can respond with events and report usage only there. One `*` in a pattern matches
   * any text. The gateway always requests events from these models and never from others. If unset,
   * support is unknown and the client's own choice is forwarded.
   */
  events?: readonly string[];
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}
