// What every process has to know before a command is answered: that keys have changed, that an account is another one. What another
// gateway on the same store has changed comes the same way, and so does that the store cannot be reached.
import type { AccountRecord } from "../plugin/account.ts";
import type { StoreNews } from "../plugin/instance.ts";
import type { Services } from "./services/services.ts";
import type { Told, WorkerCommands } from "./workers/commands.ts";

/** Another process that has to know. */
export interface Informed {
  tell<N extends Told>(name: N, ...args: Parameters<WorkerCommands[N]>): Promise<unknown>;
}

type Needed = Pick<
  Services,
  "keys" | "accounts" | "store" | "ledger" | "health" | "crossings" | "log"
>;

export class Changes {
  readonly #services: Needed;
  readonly #others: () => readonly (Informed | undefined)[];

  constructor(services: Needed, others: () => readonly (Informed | undefined)[]) {
    this.#services = services;
    this.#others = others;
    services.health.onChange((trouble) => {
      this.#tell("health", trouble).catch(() => {});
    });
  }

  #tell: Informed["tell"] = (name, ...args) =>
    Promise.all(this.#others().map((each) => each?.tell(name, ...args)));

  /** Resolves when no process remembers anything of a key any more. */
  async forget(): Promise<void> {
    this.#services.keys.forget();
    await this.#tell("forget");
  }

  async account(record: AccountRecord): Promise<void> {
    this.#services.accounts.put(record);
    await this.#tell("account", record);
  }

  /** All of them: any may be another one. */
  async accounts(): Promise<void> {
    await this.#services.accounts.read(this.#services.store);
    await this.#tell("accounts");
  }

  hear(news: StoreNews): void {
    const { type } = news;
    if (type === "away") this.#services.ledger.away(news.why);
    if (type === "crossed") this.#services.crossings?.tell(news.crossings);
    if (type !== "keys" && type !== "accounts") return;
    const heard = type === "keys" ? this.forget() : this.accounts();
    heard.catch((error: unknown) =>
      this.#services.log.error(
        { err: error },
        `not every worker has heard that ${type} have changed`,
      ),
    );
  }
}
