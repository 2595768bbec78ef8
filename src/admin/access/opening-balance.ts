// What a key had spent before it was here, as two rows of the ledger: they count in the windows that are now, so that what is left of its
// budgets is right from its first request on. Done again they change nothing.
import type { Limit } from "../../plugin/store/limit.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Reserve, Settle } from "../../plugin/store/store.ts";

/** What stands where a provider stands in other rows. */
const OPENING_TARGET = {
  provider: "opening",
  model: "balance",
  protocol: null,
  credential: "",
} as const;
/** Of its digest: enough to be its own. */
const ID_LENGTH = 24;

type Stamped<C> = C & { readonly at: number };

/** `limits`: the key's own, and those of the accounts that it stands in. `account`: their path. */
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
      // What takes nothing is never refused: it was spent, whatever the limit says.
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
