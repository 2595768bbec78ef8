// The audit log in the file itself: verify reports changed, removed, and added entries.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import type { AuditEntry } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import sqlite from "../../../plugins/stores/sqlite.ts";

const entry = (id: string): AuditEntry => ({
  id,
  at: 1_780_000_000_000,
  actor: "admin:anna",
  role: "owner",
  channel: "token",
  command: "keys.revoke",
});

const WAYS: readonly (readonly [string, string])[] = [
  ["changed", `UPDATE audit SET text = replace(text, 'anna', 'otto') WHERE id = 'a'`],
  ["taken out", "DELETE FROM audit WHERE id = 'a' AND is_end = 0"],
  ["put in", `INSERT INTO audit (seq, id, is_end, text) VALUES (99, 'c', 0, '{}')`],
  ["said to have ended otherwise", "UPDATE audit SET id = 'b' WHERE id = 'a' AND is_end = 1"],
];

it.each(WAYS)("one that was %s afterwards", async (_, sql) => {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-audited-"));
  const file = join(dir, "ledger.db");
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const lent = createTestContext({});
  onTestFinished(() => lent.end());
  const store = await sqlite.setup({ file, durability: "process", ballast_mb: 0 }, lent.ctx);
  await store.open({ instance: "one", info: { version: "1", host: "h", pid: 1 } });
  for (const id of ["a", "b"]) await store.audit!.begin(entry(id));
  await store.audit!.end({ id: "a", at: 1_780_000_000_001, outcome: "done" });
  expect(await store.verify!()).toEqual([]);
  const db = new DatabaseSync(file);
  expect(() => db.exec(sql === WAYS[2]![1] ? "DELETE FROM audit" : sql)).toThrow("append-only");
  db.exec("DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete");
  db.exec(sql);
  db.close();
  const problems = await store.verify!();
  expect(problems.map(({ path }) => path)).toContain("/audit");
});
