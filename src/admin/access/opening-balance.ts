// Creates two ledger rows for what an imported key has already spent. They count in the current
// windows, so the remaining budgets are right from the first request. Writing them again changes
// nothing.
import type { Limit } from "../../plugin/store/limit.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Reserve, Settle } from "../../plugin/store/store.ts";

/** Target of these rows, in place of a provider. */
const OPENING_TARGET = {
  provider: "opening",
  model: "balance",
  protocol: null,
  credential: "",
} as const;
/** Number of characters of the digest that make the ID unique. */
const ID_LENGTH = 24;

type Stamped<C> = C & { readonly at: number };

/**
 * Creates the rows. `limits`: limits of the key and of the accounts that it is nested in.
 * `account`: path of the account.
 */
export function createOpeningRows(of: {
  readonly key: Pick<KeyRecord, "id" | "digest" | "labels">;
  readonly limits: readonly Limit[];
  readonly account: string | undefined;
  readonly spentNano: bigint;
  readonly at: number;
}): readonly [Stamped<Reserve>, Stamped<Settle>] {
  const { key, limits, account, spentNano, at } = of;
  const attempt = `opening-${key.digest.slice(0, ID_LENGTH)}`;
  const budgets = limits.filter(({ unit }) => unit === "nano_usd");
  return [
    {
      do: "reserve",
      at,
      attempt,
      request: attempt,
      number: 1,
      key: key.id,
      target: OPENING_TARGET,
      privacy: "off",
      labels: key.labels ?? {},
      account,
      // A reserve of 0 is never rejected. The amount is already spent, whatever the limit is.
      claims: budgets.map((limit) => ({ ...limit, take: 0n })),
      holdNano: 0n,
      price: null,
    },
    {
      do: "settle",
      at,
      attempt,
      state: "estimated",
      usage: {},
      costNano: spentNano,
      outcome: "imported",
    },
  ];
}
