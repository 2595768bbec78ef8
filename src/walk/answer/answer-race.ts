/** Two answers to one client, of which one is sent. */
export interface AnswerRace {
  /** Called with the answer that is sent, before its first byte. */
  taken(by: object): void;
  /** Called before the head leaves that the first of the two has promised. */
  opens(): void;
}

/** What writes into an answer. */
export interface AnswerWriter {
  /** Whether a ping may be written here. */
  readonly between: boolean;
  /** Its call is given up. */
  broke(problem: unknown): void;
}
