// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what OpenAI has.

export interface SpeechDialect {
  /**
   * Models that can answer in events, and count nothing elsewhere; one `*` in each stands for anything. They are asked for events
   * whatever the client wants, and the others never. Absent: not known, and the client's own wish travels.
   */
  events?: readonly string[];
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}
