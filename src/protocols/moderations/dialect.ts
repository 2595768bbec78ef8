// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what OpenAI has.

export interface ModerationDialect {
  /** It reads texts alone. Absent: pictures too. */
  textOnly?: boolean;
}
