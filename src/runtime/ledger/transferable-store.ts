// A store that may change its place while the gateway serves: closed here for a process that takes over, opened again should that fail,
// or asked from then on in that process. Commands that come meanwhile wait, and none is lost.
import { STORE_READ_METHODS } from "./store-read-methods.ts";
import { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Store } from "../../plugin/store/store.ts";

/** What asks the store something, and may wait. */
const FORWARDED_METHODS = [
  "apply",
  ...STORE_READ_METHODS,
  "getOrCreateShared",
  "readSize",
  "listInstances",
] as const;

/** So long may it be on its way before new calls are refused. */
const MAX_TRANSFER_MS = 60_000;

type StoreMethod = (...args: readonly unknown[]) => Promise<unknown>;

export class TransferableStore implements AsyncDisposable {
  readonly #open: (scope: LifetimeScope) => Promise<Store & Commands>;
  readonly #pending = new Set<Promise<unknown>>();
  #scope = new LifetimeScope();
  #current!: Store & Commands;
  /** While it is on its way. */
  #transfer: Promise<void> | undefined;
  #finishTransfer = () => {};
  #transferStartedAt = 0;

  /** `open`: opens it, the same instance each time; the scope ends it. */
  constructor(open: (scope: LifetimeScope) => Promise<Store & Commands>) {
    this.#open = open;
  }

  /** The store as all others have it, wherever it is. */
  async open(): Promise<Store & Commands> {
    this.#current = await this.#open(this.#scope);
    return this.#createProxy(this.#current);
  }

  /** It is closed when what was under way is over; what is asked from now on waits. */
  async close(): Promise<void> {
    this.#transfer = new Promise((resolve) => (this.#finishTransfer = resolve));
    this.#transferStartedAt = performance.now();
    await Promise.allSettled(this.#pending);
    await this.#scope[Symbol.asyncDispose]();
  }

  /** No other process has taken it, or the one that had is gone. */
  async reopen(): Promise<void> {
    this.#transfer ??= new Promise((resolve) => (this.#finishTransfer = resolve));
    this.#scope = new LifetimeScope();
    this.#current = await this.#open(this.#scope);
    this.#onTransferred();
  }

  /** It is asked there from now on. */
  redirectTo(store: Store): void {
    this.#current = store;
    this.#onTransferred();
  }

  /** What waits for it may go on waiting: it is on its way, and has not been for long. */
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
    const forwarded = FORWARDED_METHODS.filter((name) => first[name] !== undefined).map((name) => {
      const ask: StoreMethod = (...args) =>
        this.#transfer
          ? this.#transfer.then(() => ask(...args))
          : this.#track((this.#current[name] as StoreMethod)(...args));
      return [name, ask] as const;
    });
    const now = () => this.#current;
    return {
      ...(Object.fromEntries(forwarded) as unknown as Store),
      lease: first.lease,
      supportsHandoff: first.supportsHandoff,
      open: (owner, hear) => this.#current.open(owner, hear),
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

  #track(asked: Promise<unknown>): Promise<unknown> {
    this.#pending.add(asked);
    const remove = () => void this.#pending.delete(asked);
    asked.then(remove, remove);
    return asked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}
