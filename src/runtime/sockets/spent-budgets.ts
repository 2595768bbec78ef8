// Closes the WebSockets of a key or an account when its budget is spent. The budget is read after
// each request of a socket, because the cost of a response is known only then.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Fault } from "../../model/error.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { OpenSockets } from "./open-sockets.ts";

const SPENT: Fault = {
  kind: "quota",
  code: "insufficient_quota",
  message: "The budget of this key or its account is spent.",
};

export class SpentBudgets {
  readonly #store: Pick<Store, "readLimits">;
  readonly #open: OpenSockets;
  /** Keys whose budgets are being read. */
  readonly #reading = new Set<string>();

  constructor(store: Pick<Store, "readLimits">, open: OpenSockets) {
    this.#store = store;
    this.#open = open;
  }

  /** Checks the budgets behind a request, and closes the sockets that can no longer pay. */
  check({ identity, state }: HostExchange): void {
    if (!identity) return;
    const { account } = state.admission;
    const own = budgetsOf(identity.limits);
    const shared = budgetsOf(account?.limits);
    if (own.length + shared.length === 0 || this.#reading.has(identity.id)) return;
    this.#reading.add(identity.id);
    void this.#read(identity.id, account?.path, own, shared).finally(() =>
      this.#reading.delete(identity.id),
    );
  }

  async #read(
    key: string,
    account: string | undefined,
    own: readonly Limit[],
    shared: readonly Limit[],
  ): Promise<void> {
    const spent = await this.#areSpent([...own, ...shared]);
    if (spent.slice(0, own.length).includes(true))
      this.#open.closeSpent(SPENT, ({ socket }) => socket.key === key);
    else if (spent.includes(true)) this.#open.closeSpent(SPENT, (one) => one.account === account);
  }

  /** Returns whether each of the budgets is spent. If the store does not answer, none is. */
  async #areSpent(limits: readonly Limit[]): Promise<readonly boolean[]> {
    try {
      const usage = (await this.#store.readLimits?.(limits, wallClock())) ?? [];
      return limits.map((_, i) => {
        const one = usage[i];
        return one !== undefined && one.used >= BigInt(one.max);
      });
    } catch {
      return limits.map(() => false);
    }
  }
}

const budgetsOf = (limits: readonly Limit[] | undefined): readonly Limit[] =>
  (limits ?? []).filter(({ unit }) => unit === "nano_usd");
