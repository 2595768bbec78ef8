// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what OpenAI has.

export interface TranscriptDialect {
  /**
   * The forms of an answer that its models know, the first line that fits a model; one `*` in each of `of` stands for anything. A
   * client gets the form that it asked for where one of them holds what that needs. false: they have one form, JSON with
   * segments, and no field for it. Absent: not known, and the client's own wish travels.
   */
  formats?: readonly { of: readonly string[]; formats: readonly string[] }[] | false;
  /** It translates, too. Absent: it does. */
  translates?: boolean;
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}
