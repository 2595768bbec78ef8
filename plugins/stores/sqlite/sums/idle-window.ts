// Schedules rollup updates for a second with few writes, so that they do not delay commits. The
// delay is bounded.

/**
 * Number of commands that justify an update, and the number after which the update runs even under
 * load.
 */
const MIN_COMMANDS = 32_768;
const MAX_COMMANDS = 524_288;
/** A second with at most this many commands counts as idle. */
const IDLE_COMMANDS_PER_SECOND = 4_096;

export class IdleWindow {
  readonly #onIdle: () => Promise<void>;
  #pendingCommands = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Creates a scheduler.
   * @param sum Updates the rollups. If it fails, reports only take longer.
   */
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
