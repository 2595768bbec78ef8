// A store that can move to another process while the gateway serves requests. The store is closed
// in this process before the other process opens it. If the other process cannot open the store, it
// is opened in this process again. Otherwise, calls are forwarded. Commands that arrive during the
// move wait, and no command is lost.
import { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { JobStore } from "../../plugin/store/job.ts";
import type { Store } from "../../plugin/store/store.ts";

/**
 * Store methods that only read. They can be called wherever the store is open: in this process, in
 * the primary, or in the old process during a hot restart.
 */
export const STORE_READ_METHODS = [
  "findKey",
  "listKeys",
  "listAccounts",
  "readLimits",
  "listEntries",
  "sumEntries",
  "findPrice",
  "verify",
] as const satisfies readonly (keyof Store)[];

/** Methods of the records of jobs. The version of a record rejects a change that comes too late. */
export const JOB_METHODS = [
  "put",
  "find",
  "list",
  "lease",
  "nextDueAt",
  "count",
  "delete",
] as const satisfies readonly (keyof JobStore)[];

/** Methods that query the store and may wait for it. */
const FORWARDED_METHODS = [
  "apply",
  ...STORE_READ_METHODS,
  "getOrCreateShared",
  "readSize",
  "listInstances",
] as const;

/** Maximum duration of a transfer before new calls are rejected, in milliseconds. */
const MAX_TRANSFER_MS = 60_000;

type StoreMethod = (...args: readonly unknown[]) => Promise<unknown>;

export class TransferableStore implements AsyncDisposable {
  readonly #open: (scope: LifetimeScope) => Promise<Store & Commands>;
  readonly #pending = new Set<Promise<unknown>>();
  #scope = new LifetimeScope();
  #current!: Store & Commands;
  /** Pending while the store is being transferred. */
  #transfer: Promise<void> | undefined;
  #finishTransfer = () => {};
  #transferStartedAt = 0;

  /** @param open Opens the store, with the same instance ID each time. The scope closes it. */
  constructor(open: (scope: LifetimeScope) => Promise<Store & Commands>) {
    this.#open = open;
  }

  /** Opens the store. Returns a proxy that forwards to the process in which the store is open. */
  async open(): Promise<Store & Commands> {
    this.#current = await this.#open(this.#scope);
    return this.#createProxy(this.#current);
  }

  /** Closes the store when all open commands have completed. Later commands wait. */
  async close(): Promise<void> {
    this.#transfer = new Promise((resolve) => (this.#finishTransfer = resolve));
    this.#transferStartedAt = performance.now();
    await Promise.allSettled(this.#pending);
    await this.#scope[Symbol.asyncDispose]();
  }

  /**
   * Opens the store again because no other process has opened it, or the process that had it has
   * ended.
   */
  async reopen(): Promise<void> {
    this.#transfer ??= new Promise((resolve) => (this.#finishTransfer = resolve));
    this.#scope = new LifetimeScope();
    this.#current = await this.#open(this.#scope);
    this.#onTransferred();
  }

  /** Sends all further commands to another process. */
  redirectTo(store: Store): void {
    this.#current = store;
    this.#onTransferred();
  }

  /**
   * Whether commands may continue to wait: the store is being transferred, and the time limit is
   * not reached.
   */
  get isTransferring(): boolean {
    return (
      this.#transfer !== undefined && performance.now() - this.#transferStartedAt < MAX_TRANSFER_MS
    );
  }

  #onTransferred(): void {
    this.#transfer = undefined;
    this.#finishTransfer();
  }

  #createProxy(first: Store & Commands): Store & Commands {
    const forwarded = FORWARDED_METHODS.filter((name) => first[name] !== undefined).map(
      (name) => [name, this.#forward(() => this.#current[name] as StoreMethod)] as const,
    );
    const jobs = JOB_METHODS.map(
      (name) => [name, this.#forward(() => this.#current.jobs![name] as StoreMethod)] as const,
    );
    const now = () => this.#current;
    return {
      ...(Object.fromEntries(forwarded) as unknown as Store),
      lease: first.lease,
      supportsHandoff: first.supportsHandoff,
      open: (owner, hear) => this.#current.open(owner, hear),
      jobs: first.jobs && (Object.fromEntries(jobs) as unknown as JobStore),
      thresholds: first.thresholds && {
        listUndelivered: async () => (await now().thresholds?.listUndelivered()) ?? [],
        markDelivered: async (crossings) => now().thresholds?.markDelivered(crossings),
      },
      get audit() {
        return now().audit;
      },
      get maintenance() {
        return now().maintenance;
      },
      get commands() {
        return now().commands;
      },
    } as Store & Commands;
  }

  /** Returns a method that waits while the store is being transferred. */
  #forward(getMethod: () => StoreMethod): StoreMethod {
    const ask: StoreMethod = (...args) =>
      this.#transfer ? this.#transfer.then(() => ask(...args)) : this.#track(getMethod()(...args));
    return ask;
  }

  #track(result: Promise<unknown>): Promise<unknown> {
    this.#pending.add(result);
    const remove = () => void this.#pending.delete(result);
    result.then(remove, remove);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}
