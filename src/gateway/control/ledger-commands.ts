// The ledger, as an operator reads it: sums, rows, and whether they are what was written. The same on the control socket of
// a running gateway and on the store itself. Rows are never changed: a correction is one more.
import { parseDecimal } from "../../money/decimal.ts";
import { fail } from "../../model/error.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Problem } from "../../plugin/problem.ts";
import type {
  Entry,
  LedgerQuery,
  ResultPage,
  Store,
  StoreCommand,
  Total,
} from "../../plugin/store.ts";
import { answering } from "./input.ts";
import type { DIMENSIONS, InputOf } from "./table.ts";

export type Dimension = (typeof DIMENSIONS)[number];

/** A sum, with how many of its calls are only estimates. */
export interface Sum extends Total {
  readonly estimated: number;
}

export interface Sums {
  readonly rows: readonly Sum[];
  /** Of all of it: a call with two labels is in two rows, and here once. */
  readonly total: Sum;
}

export interface VerifyResult {
  readonly problems: readonly Problem[];
  /** Whether the store keeps a chain of hashes at all. */
  readonly verifiable: boolean;
  /** The newest hash: an operator who notes it down can tell later whether the ledger was shortened. */
  readonly head: { readonly seq: number; readonly hash: string } | undefined;
  /** Whether the hash that was asked about is still in it. */
  readonly holds: boolean | undefined;
}

/** Rows of one page. */
const MOST = 1_000;

type Adjust = Extract<StoreCommand, { do: "adjust" }>;

/** `adjust`: durable when it resolves. */
export function ledgerCommands(
  store: Store & Commands,
  adjust: (command: Adjust) => Promise<unknown>,
) {
  async function sums(query: LedgerQuery, by: readonly Dimension[]): Promise<Sum[]> {
    const [all, guessed] = await Promise.all([
      store.totals({ ...query, by }),
      store.totals({ ...query, by, state: "estimated" }),
    ]);
    const name = (total: Total) => JSON.stringify(by.map((each) => total.by[each]));
    const estimated = new Map(guessed.map((total) => [name(total), total.calls]));
    return all.map((total) => ({ ...total, estimated: estimated.get(name(total)) ?? 0 }));
  }
  const nothing: Sum = { by: {}, calls: 0, usage: {}, costNano: 0n, unpriced: 0, estimated: 0 };
  return answering({
    "ledger.totals": async (input): Promise<Sums> => {
      const query = await queryOf(input, store);
      const { by = ["key"] } = input;
      const [rows, [total = nothing]] = await Promise.all([sums(query, by), sums(query, [])]);
      return { rows, total };
    },
    "ledger.entries": async (input): Promise<ResultPage<Entry>> =>
      store.entries(await queryOf(input, store), {
        after: input.after,
        limit: Math.min(input.limit ?? 100, MOST),
      }),
    /** Its budgets count it too, in the windows that the call began in. */
    "ledger.adjust": async ({ attempt, usd, reason }) => {
      const costNano = parseDecimal(usd, 9);
      await adjust({ do: "adjust", at: Date.now(), attempt, costNano, reason, actor: "operator" });
      return { attempt, costNano };
    },
    "ledger.verify": async ({ hash }): Promise<VerifyResult> => {
      const { head, holds } = store.commands ?? {};
      return {
        problems: (await store.verify?.()) ?? [],
        verifiable: store.verify !== undefined,
        head: (await head?.run({})) as VerifyResult["head"],
        holds: hash === undefined ? undefined : ((await holds?.run({ hash })) as boolean),
      };
    },
  });
}

type Rows = Pick<
  InputOf<"ledger.entries">,
  "key" | "account" | "attempt" | "upstreamId" | "from" | "to" | "state"
>;

const queryOf = async (
  { key, account, attempt, upstreamId, from, to, state }: Rows,
  store: Store,
): Promise<LedgerQuery> => ({
  key: await keyOf(key, store),
  account,
  attempt,
  upstreamId,
  from,
  to,
  state,
});

/** By id, or by the name that only one has. A key of which nothing is known here may have rows all the same. */
async function keyOf(said: string | undefined, store: Store): Promise<string | undefined> {
  if (said === undefined) return undefined;
  const named = new Set<string>();
  let after: string | undefined;
  do {
    const page = await store.keys({ after, limit: 500 });
    for (const { id, name } of page.items) {
      if (id === said) return id;
      if (name === said) named.add(id);
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
  const [id, ...others] = named;
  if (others.length > 0)
    fail("invalid", `Several keys are named "${said}": say the id. ${[...named].join(", ")}`, {
      param: "key",
    });
  if (id !== undefined) return id;
  const { items } = await store.entries({ key: said }, { limit: 1 });
  if (items.length === 0)
    fail(
      "not_found",
      `There is no key "${said}", and no row of one. A key that stands in gateway.yaml is known here by its id.`,
      { param: "key", code: "no_such_key" },
    );
  return said;
}
