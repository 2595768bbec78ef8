// Checks of accounts and limit usage, for stores with `listAccounts` and `readLimits`. Stores
// without these methods pass.
import assert from "node:assert/strict";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { Store, StoreCommand } from "../../plugin/store/store.ts";
import {
  limitClaim,
  NOON,
  applyOne,
  assertInvalid,
  reserveCommand,
  SECOND_OWNER,
  settleCommand,
  type Law,
} from "./fixtures.ts";
import type { AuditEntry } from "../../plugin/store/audit.ts";

const createAccount = (id: string, more: Partial<AccountRecord> = {}): AccountRecord => ({
  id,
  created: NOON,
  version: 1,
  ...more,
});
const accountCommand = (record: AccountRecord): StoreCommand => ({
  do: "account",
  at: NOON,
  account: record,
});

async function listAllAccounts(store: Store): Promise<AccountRecord[]> {
  const found: AccountRecord[] = [];
  let after: string | undefined;
  do {
    const page = await store.listAccounts!({ after, limit: 2 });
    assert.ok(page.items.length <= 2);
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** Checks of the accounts that a store keeps and of the limit usage that it reports. */
export const accountLaws: readonly Law[] = [
  [
    "accounts are stored completely, replaced completely, listed by id in pages, and " +
      "kept after a crash",
    async (store, crash) => {
      if (!store.listAccounts) return;
      const limits = [
        { scope: "account:b", unit: "nano_usd", max: 2n ** 60n, per: "month" },
      ] as const;
      const b = createAccount("b", {
        parent: "a",
        name: "Büro",
        limits,
        labels: { team: "b" },
        models: ["x/*"],
        privacy: "strict",
        defaults: { limits: [{ unit: "requests", max: 5, per: "minute" }] },
        discloseLimits: "hidden",
      });
      await store.apply(["c", "a", "e", "d"].map((id) => accountCommand(createAccount(id))));
      await applyOne(store, accountCommand(b));
      assert.deepEqual(await listAllAccounts(store), [
        createAccount("a"),
        b,
        createAccount("c"),
        createAccount("d"),
        createAccount("e"),
      ]);
      const changed = createAccount("b", { version: 2, closedAt: NOON + 5 });
      await applyOne(store, accountCommand(changed));
      const after = await crash();
      await after.open(SECOND_OWNER);
      assert.deepEqual((await listAllAccounts(after))[1], changed);
    },
  ],

  [
    "an account changes only from its previous version, and a repeated change has no effect",
    async (store) => {
      if (!store.listAccounts) return;
      await assertInvalid(store.apply([accountCommand(createAccount("a", { version: 2 }))]));
      await applyOne(store, accountCommand(createAccount("a")));
      await applyOne(store, accountCommand(createAccount("a")));
      await assertInvalid(store.apply([accountCommand(createAccount("a", { name: "other" }))]));
      await applyOne(store, accountCommand(createAccount("a", { version: 2, name: "two" })));
      await assertInvalid(store.apply([accountCommand(createAccount("a"))]));
      await assertInvalid(store.apply([accountCommand(createAccount("a", { version: 4 }))]));
      // If one command of a batch is invalid, none of the batch is applied.
      await assertInvalid(
        store.apply([
          accountCommand(createAccount("b")),
          accountCommand(createAccount("a", { version: 3 })),
          accountCommand(createAccount("c", { version: 9 })),
        ]),
      );
      assert.deepEqual(await listAllAccounts(store), [
        createAccount("a", { version: 2, name: "two" }),
      ]);
      await store.apply([
        accountCommand(createAccount("a", { version: 3 })),
        accountCommand(createAccount("a", { version: 4 })),
      ]);
      assert.deepEqual(await listAllAccounts(store), [createAccount("a", { version: 4 })]);
    },
  ],

  [
    "an account cannot be nested under itself",
    async (store) => {
      if (!store.listAccounts) return;
      await store.apply([
        accountCommand(createAccount("a")),
        accountCommand(createAccount("b", { parent: "a" })),
        accountCommand(createAccount("c", { parent: "b" })),
        // A parent that the store does not know may be an account in gateway.yaml.
        accountCommand(createAccount("d", { parent: "elsewhere" })),
      ]);
      await assertInvalid(
        store.apply([accountCommand(createAccount("a", { version: 2, parent: "c" }))]),
      );
      await assertInvalid(
        store.apply([accountCommand(createAccount("b", { version: 2, parent: "b" }))]),
      );
      await assertInvalid(
        store.apply([
          accountCommand(createAccount("a", { version: 2, parent: "d" })),
          accountCommand(createAccount("d", { version: 2, parent: "c" })),
        ]),
      );
      assert.deepEqual(
        (await listAllAccounts(store)).map(({ id, parent, version }) => [id, parent, version]),
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
    "reading a limit's usage returns the count and changes nothing",
    async (store) => {
      if (!store.readLimits) return;
      const { take: _, ...money } = limitClaim({ max: 10_000n }, 0n);
      const calls: Limit = { scope: "key:alice", unit: "requests", max: 10, per: "minute" };
      const open: Limit = { scope: "key:alice", unit: "concurrent", max: 3, per: "open" };
      const never: Limit = { scope: "account:none", unit: "tokens", max: 7, per: "day" };
      const readCounts = async () =>
        (await store.readLimits!([money, calls, open, never], NOON)).map(
          ({ used, reserved, remaining }) => [used, reserved, remaining],
        );
      const claims = [
        { ...money, take: 4_000n },
        { ...calls, take: 1n },
        { ...open, take: 1n },
      ];
      await applyOne(store, reserveCommand("a", { claims }));
      await applyOne(store, reserveCommand("b", { claims }));
      const before = await readCounts();
      assert.deepEqual(before, [
        [0n, 8_000n, 2_000n],
        [2n, 0n, 8],
        [0n, 2n, 1],
        [0n, 0n, 7],
      ]);
      assert.deepEqual(await readCounts(), before);
      await applyOne(store, settleCommand("a", { at: NOON, costNano: 700n }));
      assert.deepEqual((await readCounts())[0], [700n, 4_000n, 5_300n]);
      const [{ resetsAt, scope, max } = {} as never] = await store.readLimits([never], NOON);
      assert.deepEqual([resetsAt, scope, max], [NOON + 43_200_000, "account:none", 7]);
      assert.deepEqual(await store.readLimits([], NOON), []);
      assert.equal((await store.listEntries({})).items.length, 3);
    },
  ],
];

// Checks of the audit log, for stores that have one. Stores without an audit log pass.

const createAuditEntry = (id: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  at: NOON,
  actor: "admin:anna",
  role: "operator",
  channel: "token",
  address: "192.0.2.7",
  command: "keys.revoke",
  target: "k1",
  before: { keys: [{ id: "k1", models: ["*"] }] },
  after: { id: "k1" },
  ...more,
});

const listAudit = async (store: Store, limit?: number): Promise<string[]> => {
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page = await store.audit!.list({ after, limit });
    assert.ok(page.items.length <= (limit ?? 1_000));
    found.push(...page.items.map(({ id, outcome }) => `${id} ${outcome}`));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
};

/** Checks of the commands that the audit log records. */
export const auditLaws: readonly Law[] = [
  [
    "audit entries are listed completely, newest first, in pages, with their outcome",
    async (store) => {
      const { audit } = store;
      if (!audit) return;
      for (const id of ["a", "b", "c"]) await audit.begin(createAuditEntry(id));
      await audit.end({ id: "b", at: NOON + 1, outcome: "failed", code: "no_such_key" });
      await audit.end({ id: "a", at: NOON + 2, outcome: "done" });
      const { items } = await audit.list();
      assert.deepEqual(
        items.map(({ id }) => id),
        ["c", "b", "a"],
      );
      assert.deepEqual(items[1], {
        ...createAuditEntry("b"),
        outcome: "failed",
        code: "no_such_key",
      });
      for (const limit of [1, 2, 3])
        assert.deepEqual(await listAudit(store, limit), ["c unknown", "b failed", "a done"]);
      assert.deepEqual(await store.verify?.(), store.verify && []);
    },
  ],
  [
    "audit entries are not ledger entries, and are kept after a crash",
    async (store, crash) => {
      if (!store.audit) return;
      await store.apply([reserveCommand("x")]);
      await store.audit.begin(createAuditEntry("a"));
      await store.apply([settleCommand("x")]);
      await store.audit.begin(createAuditEntry("b"));
      const { items } = await store.listEntries({});
      assert.deepEqual(
        items.map(({ kind }) => kind),
        ["reserve", "settle"],
      );
      const [all] = await store.sumEntries({ by: [] });
      assert.equal(all?.calls, 1);
      const next = await crash();
      await next.open(SECOND_OWNER);
      assert.deepEqual(await listAudit(next), ["b unknown", "a unknown"]);
      assert.deepEqual(await next.verify?.(), next.verify && []);
    },
  ],
  [
    "pruning keeps audit entries, and later entries still prove the chain",
    async (store) => {
      const prune = store.maintenance?.prune;
      if (!store.audit || !prune) return;
      const day = 86_400_000;
      for (const [i, id] of ["a", "b", "c"].entries()) {
        await store.apply([reserveCommand(`r${i}`, { at: NOON + i * day })]);
        await store.audit.begin(createAuditEntry(id, { at: NOON + i * day }));
        await store.apply([settleCommand(`r${i}`, { at: NOON + i * day + 1_000 })]);
        await store.audit.end({ id, at: NOON + i * day + 2_000, outcome: "done" });
      }
      const all = ["c done", "b done", "a done"];
      for (const days of [1, 2, 5]) {
        await prune(NOON + days * day);
        assert.deepEqual(await listAudit(store), all);
        assert.deepEqual(await store.verify?.(), store.verify && []);
      }
    },
  ],
];
