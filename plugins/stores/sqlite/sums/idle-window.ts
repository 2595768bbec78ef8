// Summing up gives way to calls that wait for a commit: it waits for a second in which little is written, and not for ever.

/** Commands that are worth it; and after which it is time, whatever there is to do. */
const MIN_COMMANDS = 32_768;
const MAX_COMMANDS = 524_288;
/** So many in a second are little. */
const IDLE_COMMANDS_PER_SECOND = 4_096;

export class IdleWindow {
  readonly #onIdle: () => Promise<void>;
  #pendingCommands = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `sum`: without it reports take longer, and that is all. */
  constructor(sum: () => Promise<void>) {
    this.#onIdle = sum;
  }

  addCommands(commands: number): void {
    if ((this.#pendingCommands += commands) >= MIN_COMMANDS && !this.#timer) this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    const before = this.#pendingCommands;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (
        this.#pendingCommands - before > IDLE_COMMANDS_PER_SECOND &&
        this.#pendingCommands < MAX_COMMANDS
      )
        return this.#schedule();
      this.#pendingCommands = 0;
      this.#onIdle().catch(() => {});
    }, 1_000).unref();
  }
}
