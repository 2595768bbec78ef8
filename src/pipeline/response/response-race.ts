/** Two answers to one client, of which one is sent. */
export interface ResponseRace {
  /** Called with the answer that is sent, before its first byte. */
  onWinner(by: object): void;
  /** Called before the head leaves that the first of the two has promised. */
  onOpening(): void;
}

/** What writes into an answer. */
export interface ResponseWriter {
  /** Whether a ping may be written here. */
  readonly isBetweenEvents: boolean;
  /** Its call is given up. */
  onError(problem: unknown): void;
}
