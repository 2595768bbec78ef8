/** A race of two responses for one client. Only one of them is sent. */
export interface ResponseRace {
  /** Called with the response that wins, before its first byte is sent. */
  onWinner(by: object): void;
  /** Called before the headers of the first response are sent. */
  onOpening(): void;
}

/** The code that writes a response. */
export interface ResponseWriter {
  /** Whether a ping may be written at this position. */
  readonly isBetweenEvents: boolean;
  /** Called when the call must end with this error. */
  onError(problem: unknown): void;
}
