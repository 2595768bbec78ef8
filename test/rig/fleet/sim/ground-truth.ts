// What really happened in a world, by the clients and the provider: which calls were sent, and what they cost. It knows nothing of the ledger.

export const TAKE = 1_000n;

export interface Budget {
  readonly scope: string;
  readonly max: bigint;
}

export interface Call {
  readonly attempt: string;
  readonly budgets: readonly Budget[];
  /** asked: no answer yet. sent: it was let through. denied: a budget has no room. refused: the gateway cannot take it now. */
  state: "asked" | "sent" | "denied" | "refused";
  /** What the provider billed, once it has answered. */
  cost?: bigint;
  /** The settle was acknowledged. */
  settled: boolean;
  /** Its process was killed, or taken for dead, before the settle was acknowledged: the ledger may estimate it. */
  readonly process: string;
}

export class Truth {
  readonly calls = new Map<string, Call>();
  readonly killed = new Set<string>();
  sent = 0;
  denied = 0;
  refused = 0;

  /** Billed, or still to be billed at most. */
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
