// Checks of the audit log, for stores that have one. Stores without it pass.
import assert from "node:assert/strict";
import type { AuditEntry } from "../../plugin/store/audit.ts";
import type { Store } from "../../plugin/store/store.ts";
import { NOON, reserveCommand, SECOND_OWNER, settleCommand, type Law } from "./fixtures.ts";

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
