// Accounts that commands made, and what limits have counted: for stores that have `accounts` and `counted`. Others keep these laws by
// having neither.
import assert from "node:assert/strict";
import type { AccountRecord } from "../../plugin/account.ts";
import type { Limit } from "../../plugin/limit.ts";
import type { Store, StoreCommand } from "../../plugin/store.ts";
import { claim, NOON, one, refused, reserve, second, settle, type Law } from "./bench.ts";

const account = (id: string, more: Partial<AccountRecord> = {}): AccountRecord => ({
  id,
  created: NOON,
  version: 1,
  ...more,
});
const put = (record: AccountRecord): StoreCommand => ({
  do: "account",
  at: NOON,
  account: record,
});

async function all(store: Store): Promise<AccountRecord[]> {
  const found: AccountRecord[] = [];
  let after: string | undefined;
  do {
    const page = await store.accounts!({ after, limit: 2 });
    assert.ok(page.items.length <= 2);
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** What a store keeps of accounts, and what it says of limits. */
export const accountLaws: readonly Law[] = [
  [
    "accounts are kept whole, replaced whole, listed by id in pages, and there after a crash",
    async (store, crash) => {
      if (!store.accounts) return;
      const limits = [
        { scope: "account:b", unit: "nano_usd", max: 2n ** 60n, per: "month" },
      ] as const;
      const b = account("b", {
        parent: "a",
        name: "Büro",
        limits,
        labels: { team: "b" },
        models: ["x/*"],
        privacy: "strict",
        defaults: { limits: [{ unit: "requests", max: 5, per: "minute" }] },
        tells: "nothing",
      });
      await store.apply(["c", "a", "e", "d"].map((id) => put(account(id))));
      await one(store, put(b));
      assert.deepEqual(await all(store), [
        account("a"),
        b,
        account("c"),
        account("d"),
        account("e"),
      ]);
      const changed = account("b", { version: 2, ended: NOON + 5 });
      await one(store, put(changed));
      const after = await crash();
      await after.open(second);
      assert.deepEqual((await all(after))[1], changed);
    },
  ],

  [
    "an account changes from the version before it and from no other, and the same change again is none",
    async (store) => {
      if (!store.accounts) return;
      await refused(store.apply([put(account("a", { version: 2 }))]));
      await one(store, put(account("a")));
      await one(store, put(account("a")));
      await refused(store.apply([put(account("a", { name: "other" }))]));
      await one(store, put(account("a", { version: 2, name: "two" })));
      await refused(store.apply([put(account("a"))]));
      await refused(store.apply([put(account("a", { version: 4 }))]));
      // Nothing of a batch happens when one of it cannot.
      await refused(
        store.apply([
          put(account("b")),
          put(account("a", { version: 3 })),
          put(account("c", { version: 9 })),
        ]),
      );
      assert.deepEqual(await all(store), [account("a", { version: 2, name: "two" })]);
      await store.apply([put(account("a", { version: 3 })), put(account("a", { version: 4 }))]);
      assert.deepEqual(await all(store), [account("a", { version: 4 })]);
    },
  ],

  [
    "no account comes to stand in itself",
    async (store) => {
      if (!store.accounts) return;
      await store.apply([
        put(account("a")),
        put(account("b", { parent: "a" })),
        put(account("c", { parent: "b" })),
        // One that the store does not know may be another place's.
        put(account("d", { parent: "elsewhere" })),
      ]);
      await refused(store.apply([put(account("a", { version: 2, parent: "c" }))]));
      await refused(store.apply([put(account("b", { version: 2, parent: "b" }))]));
      await refused(
        store.apply([
          put(account("a", { version: 2, parent: "d" })),
          put(account("d", { version: 2, parent: "c" })),
        ]),
      );
      assert.deepEqual(
        (await all(store)).map(({ id, parent, version }) => [id, parent, version]),
        [
          ["a", undefined, 1],
          ["b", "a", 1],
          ["c", "b", 1],
          ["d", "elsewhere", 1],
        ],
      );
    },
  ],

  [
    "what a limit has counted is told, and telling it takes nothing",
    async (store) => {
      if (!store.counted) return;
      const { take: _, ...money } = claim({ max: 10_000n }, 0n);
      const calls: Limit = { scope: "key:alice", unit: "requests", max: 10, per: "minute" };
      const open: Limit = { scope: "key:alice", unit: "concurrent", max: 3, per: "open" };
      const never: Limit = { scope: "account:none", unit: "tokens", max: 7, per: "day" };
      const told = async () =>
        (await store.counted!([money, calls, open, never], NOON)).map(({ used, held, left }) => [
          used,
          held,
          left,
        ]);
      const claims = [
        { ...money, take: 4_000n },
        { ...calls, take: 1n },
        { ...open, take: 1n },
      ];
      await one(store, reserve("a", { claims }));
      await one(store, reserve("b", { claims }));
      const before = await told();
      assert.deepEqual(before, [
        [0n, 8_000n, 2_000n],
        [2n, 0n, 8],
        [0n, 2n, 1],
        [0n, 0n, 7],
      ]);
      assert.deepEqual(await told(), before);
      await one(store, settle("a", { at: NOON, costNano: 700n }));
      assert.deepEqual((await told())[0], [700n, 4_000n, 5_300n]);
      const [{ resetsAt, scope, max } = {} as never] = await store.counted([never], NOON);
      assert.deepEqual([resetsAt, scope, max], [NOON + 43_200_000, "account:none", 7]);
      assert.deepEqual(await store.counted([], NOON), []);
      assert.equal((await store.entries({})).items.length, 3);
    },
  ],
];
