// Notifies every process of this gateway of changed keys or accounts, before the command that
// changed them is answered. Changes by other gateways on the same store, and outages of the store,
// are reported in the same way.
import type { AccountRecord } from "../plugin/store/account.ts";
import type { StoreEvent } from "../plugin/store/store-instance.ts";
import type { Services } from "./services.ts";
import type { BroadcastName, WorkerCommands } from "./workers/worker-protocol.ts";

/** Another process of this gateway. */
export interface PeerProcess {
  call<N extends BroadcastName>(name: N, ...args: Parameters<WorkerCommands[N]>): Promise<unknown>;
}

type ChangeServices = Pick<
  Services,
  | "keyCache"
  | "accountCache"
  | "store"
  | "ledgerQueue"
  | "ledgerAvailability"
  | "thresholds"
  | "log"
>;

export class ChangeBroadcast {
  readonly #services: ChangeServices;
  readonly #otherProcesses: () => readonly (PeerProcess | undefined)[];

  constructor(services: ChangeServices, others: () => readonly (PeerProcess | undefined)[]) {
    this.#services = services;
    this.#otherProcesses = others;
    services.ledgerAvailability.onChange((trouble) => {
      this.#callOthers("setLedgerAvailability", trouble).catch(() => {});
    });
  }

  #callOthers: PeerProcess["call"] = (name, ...args) =>
    Promise.all(this.#otherProcesses().map((each) => each?.call(name, ...args)));

  /** Resolves when no process has a cached key left. */
  async invalidateKeys(): Promise<void> {
    this.#services.keyCache.invalidate();
    await this.#callOthers("invalidateKeys");
  }

  /** Called after keys were written, by a command or by a plugin of any process. */
  keysChanged(): void {
    this.invalidateKeys().catch((error: unknown) =>
      this.#services.log.error({ err: error }, "change of keys not delivered to all workers"),
    );
  }

  async accountChanged(record: AccountRecord): Promise<void> {
    this.#services.accountCache.put(record);
    await this.#callOthers("accountChanged", record);
  }

  /** Reloads all accounts in every process. Used when it is unknown which accounts changed. */
  async reloadAccounts(): Promise<void> {
    await this.#services.accountCache.load(this.#services.store);
    await this.#callOthers("reloadAccounts");
  }

  onStoreEvent(news: StoreEvent): void {
    const { type } = news;
    if (type === "unavailable") this.#services.ledgerQueue.markUnreachable(news.reason);
    if (type === "thresholds_reached") this.#services.thresholds?.deliver(news.crossings);
    if (type !== "keys_changed" && type !== "accounts_changed") return;
    const done = type === "keys_changed" ? this.invalidateKeys() : this.reloadAccounts();
    done.catch((error: unknown) =>
      this.#services.log.error({ err: error }, `change of ${type} not delivered to all workers`),
    );
  }
}
