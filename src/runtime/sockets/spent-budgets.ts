// Closes the WebSockets of a key or an account when its budget is spent. It may be spent by another
// socket, another process, or another gateway, so the budgets of all open sockets are read together
// every second. They are also read when a request is settled.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Fault } from "../../model/error.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { OpenSocket, OpenSockets } from "./open-sockets.ts";

const SPENT: Fault = {
  kind: "quota",
  code: "insufficient_quota",
  message: "The budget of this key or its account is spent.",
};

export class SpentBudgets {
  readonly #store: Pick<Store, "readLimits">;
  readonly #open: OpenSockets;
  readonly #generation: () => object;
  /** Budgets of each socket's key and account. */
  readonly #budgets = new WeakMap<OpenSocket, readonly Limit[]>();
  /**
   * Budgets that middleware declared for the last request of a socket. They belong to the config
   * generation of that request.
   */
  readonly #declared = new WeakMap<OpenSocket, { gen: object; limits: readonly Limit[] }>();
  #reading: Promise<void> | undefined;
  #readAgain = false;

  /** @param generation Returns the config generation that is in use. */
  constructor(store: Pick<Store, "readLimits">, open: OpenSockets, generation: () => object) {
    this.#store = store;
    this.#open = open;
    this.#generation = generation;
    open.onSweep(() => void this.check());
  }

  /** Notes the budgets of a socket, when it is opened and when its key was checked again. */
  watch(socket: OpenSocket, x: HostExchange): void {
    this.#budgets.set(socket, ownBudgets(x));
  }

  /** Checks all budgets after a request, because its cost is known now. */
  onSettled(socket: OpenSocket, x: HostExchange): void {
    const { gen, billing } = x.state;
    const own = new Set(ownBudgets(x).map(windowOf));
    const limits = billing.limitStates.filter(isBudget).filter((one) => !own.has(windowOf(one)));
    this.#declared.set(socket, { gen, limits });
    void this.check();
  }

  /** Closes the sockets that can no longer pay. Called every second, and after each request. */
  check(): Promise<void> {
    this.#readAgain = true;
    return (this.#reading ??= this.#checkAll().finally(() => (this.#reading = undefined)));
  }

  async #checkAll(): Promise<void> {
    while (this.#readAgain) {
      this.#readAgain = false;
      const budgets = new Map<string, Limit>();
      for (const one of this.#open.list())
        for (const limit of this.#budgetsOf(one)) budgets.set(nameOf(limit), limit);
      if (budgets.size === 0) return;
      const spent = await this.#findSpent(budgets);
      if (spent.size > 0)
        this.#open.closeSpent(SPENT, (one) =>
          this.#budgetsOf(one).some((limit) => spent.has(nameOf(limit))),
        );
    }
  }

  #budgetsOf(socket: OpenSocket): readonly Limit[] {
    const own = this.#budgets.get(socket) ?? [];
    const declared = this.#declared.get(socket);
    return declared?.gen === this.#generation() ? [...own, ...declared.limits] : own;
  }

  /** Returns which of the budgets are spent. If the store does not answer, the result is empty. */
  async #findSpent(budgets: ReadonlyMap<string, Limit>): Promise<ReadonlySet<string>> {
    const spent = new Set<string>();
    try {
      const usage = (await this.#store.readLimits?.([...budgets.values()], wallClock())) ?? [];
      for (const [i, name] of [...budgets.keys()].entries()) {
        const one = usage[i];
        if (one !== undefined && one.used >= BigInt(one.max)) spent.add(name);
      }
    } catch {
      // The store reports its outage itself, and rejects the next request.
    }
    return spent;
  }
}

const isBudget = ({ unit }: Limit): boolean => unit === "nano_usd";

/** Returns the budgets of the key and of its account. */
const ownBudgets = ({ identity, state }: HostExchange): readonly Limit[] =>
  [...(identity?.limits ?? []), ...(state.admission.account?.limits ?? [])].filter(isBudget);

const windowOf = ({ scope, per }: Limit): string => `${scope}\n${per}`;
const nameOf = (limit: Limit): string => `${windowOf(limit)}\n${limit.max}`;
