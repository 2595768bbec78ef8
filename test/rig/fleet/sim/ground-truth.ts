// What really happened in a simulation, from clients and the provider: the calls that were sent,
// and their cost. It is independent of the ledger.

export const TAKE = 1_000n;

export interface Budget {
  readonly scope: string;
  readonly max: bigint;
  /** A member of a group: maximum number of its members. */
  readonly maxMembers?: number;
}

export interface Call {
  readonly attempt: string;
  readonly budgets: readonly Budget[];
  /**
   * asked: no response yet. sent: admitted. denied: no budget left. refused: the gateway cannot
   * accept it now.
   */
  state: "asked" | "sent" | "denied" | "refused";
  /** The provider's bill, after its response. */
  cost?: bigint;
  /** The settle was acknowledged. */
  settled: boolean;
  /**
   * Its process was killed, or its lease expired, before the settle was acknowledged: the ledger
   * may estimate it.
   */
  readonly process: string;
}

export class Truth {
  readonly calls = new Map<string, Call>();
  readonly killed = new Set<string>();
  sent = 0;
  denied = 0;
  refused = 0;

  /** Billed, or the maximum still to be billed. */
  spent(budget: Budget): bigint {
    let all = 0n;
    for (const call of this.calls.values())
      if (call.state === "sent" && call.budgets.includes(budget)) all += call.cost ?? TAKE;
    return all;
  }

  over(budgets: readonly Budget[]): string[] {
    return budgets.flatMap((budget) => {
      const spent = this.spent(budget);
      return spent > budget.max ? [`budget ${budget.scope}: ${spent} spent of ${budget.max}`] : [];
    });
  }
}

export const idOf = ({ scope }: Budget): string => `nano_usd|total|0|${scope}`;
