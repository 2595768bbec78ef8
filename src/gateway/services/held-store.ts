// A store that may change its place while the gateway serves: closed here for a process that takes over, opened again should that fail,
// or asked from then on in that process. Commands that come meanwhile wait, and none is lost.
import { READS } from "./store-questions.ts";
import { Scope } from "../../lib/scope.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Store } from "../../plugin/store.ts";

/** What asks the store something, and may wait. */
const ASKS = ["apply", ...READS, "shared", "size", "instances"] as const;

/** So long may it be on its way before new calls are refused. */
const MOVING_MS = 60_000;

type Asked = (...args: readonly unknown[]) => Promise<unknown>;

export class HeldStore implements AsyncDisposable {
  readonly #open: (scope: Scope) => Promise<Store & Commands>;
  readonly #under = new Set<Promise<unknown>>();
  #scope = new Scope();
  #now!: Store & Commands;
  /** While it is on its way. */
  #moving: Promise<void> | undefined;
  #moved = () => {};
  #since = 0;

  /** `open`: opens it, the same instance each time; the scope ends it. */
  constructor(open: (scope: Scope) => Promise<Store & Commands>) {
    this.#open = open;
  }

  /** The store as all others have it, wherever it is. */
  async open(): Promise<Store & Commands> {
    this.#now = await this.#open(this.#scope);
    return this.#everywhere(this.#now);
  }

  /** It is closed when what was under way is over; what is asked from now on waits. */
  async close(): Promise<void> {
    this.#moving = new Promise((resolve) => (this.#moved = resolve));
    this.#since = performance.now();
    await Promise.allSettled(this.#under);
    await this.#scope[Symbol.asyncDispose]();
  }

  /** No other process has taken it, or the one that had is gone. */
  async openAgain(): Promise<void> {
    this.#moving ??= new Promise((resolve) => (this.#moved = resolve));
    this.#scope = new Scope();
    this.#now = await this.#open(this.#scope);
    this.#arrived();
  }

  /** It is asked there from now on. */
  standsIn(store: Store): void {
    this.#now = store;
    this.#arrived();
  }

  /** What waits for it may go on waiting: it is on its way, and has not been for long. */
  get isMoving(): boolean {
    return this.#moving !== undefined && performance.now() - this.#since < MOVING_MS;
  }

  #arrived(): void {
    this.#moving = undefined;
    this.#moved();
  }

  #everywhere(first: Store & Commands): Store & Commands {
    const asked = ASKS.filter((name) => first[name] !== undefined).map((name) => {
      const ask: Asked = (...args) =>
        this.#moving
          ? this.#moving.then(() => ask(...args))
          : this.#tracked((this.#now[name] as Asked)(...args));
      return [name, ask] as const;
    });
    const now = () => this.#now;
    return {
      ...(Object.fromEntries(asked) as unknown as Store),
      lease: first.lease,
      handsOver: first.handsOver,
      open: (owner, hear) => this.#now.open(owner, hear),
      crossings: first.crossings && {
        untold: async () => (await now().crossings?.untold()) ?? [],
        told: async (crossings) => now().crossings?.told(crossings),
      },
      get audit() {
        return now().audit;
      },
      get keeping() {
        return now().keeping;
      },
      get commands() {
        return now().commands;
      },
    } as Store & Commands;
  }

  #tracked(asked: Promise<unknown>): Promise<unknown> {
    this.#under.add(asked);
    const over = () => void this.#under.delete(asked);
    asked.then(over, over);
    return asked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}
