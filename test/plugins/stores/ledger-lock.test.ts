import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { lockLedger } from "../../../plugins/stores/sqlite/lock.ts";

it("only one owner at a time has the lock of a ledger", () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-lock-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, "ledger.db");
  const first = lockLedger(file);
  expect(() => lockLedger(file)).toThrow(`The ledger ${file} is in use by another process.`);
  lockLedger(`${file}.other`).release();
  first.release();
  lockLedger(file).release();
});
