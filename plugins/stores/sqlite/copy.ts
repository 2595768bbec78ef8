// A whole ledger in one file: written beside the one that goes on, and put where the next one begins.
import { chmodSync, constants, copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fail, type LedgerCopy, type LedgerSum, type Total } from "tollgate/plugin";
import { createTotals, isCounted } from "tollgate/store";
import { headOf } from "./chain.ts";
import { prunedSums } from "./pruned.ts";
import { verify } from "./reader.ts";
import { checkVersion } from "./schema.ts";
import { rowsOf, STORED, type Stored } from "./stored.ts";

/** One reading, however long it takes; what is committed meanwhile is not in it. */
export function backup(file: string, to: string): LedgerCopy {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    db.prepare("VACUUM INTO ?").run(to);
  } finally {
    db.close();
  }
  return factsOf(to);
}

function factsOf(file: string): LedgerCopy {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const totals = createTotals([]);
    for (const [facts, amounts, at] of prunedSums(db, {})) totals.take(facts, amounts, at, {});
    const batches = db.prepare(
      `SELECT ${STORED} FROM batch WHERE first > coalesce((SELECT last FROM base), 0) ORDER BY first`,
    );
    for (const stored of batches.iterate() as Iterable<unknown>)
      for (const row of rowsOf(stored as Stored)) if (isCounted(row, undefined)) totals.add(row);
    const erased = db.prepare("SELECT hash FROM word WHERE gone > 0 ORDER BY hash").all();
    const { seq, hash } = headOf(db);
    return {
      head: { seq, hash },
      total: sumOf(totals.totals()[0]),
      erased: erased.map((row) => String(row["hash"])),
    };
  } finally {
    db.close();
  }
}

/** What is absent is nothing. */
export const sumOf = (total: Total | undefined): LedgerSum => ({
  calls: total?.calls ?? 0,
  usage: total?.usage ?? {},
  costNano: total?.costNano ?? 0n,
  unpriced: total?.unpriced ?? 0,
});

/** `to`: where a ledger would be opened. */
export async function restore(from: string, to: string): Promise<LedgerCopy> {
  if (existsSync(to)) fail("conflict", `There is a ledger already: ${to}.`, { code: "not_empty" });
  const db = new DatabaseSync(from, { readOnly: true });
  try {
    if (checkVersion(db, from) === 0) throw new Error("It is no ledger.");
  } finally {
    db.close();
  }
  const [problem, ...more] = (await verify(from, undefined)).problems;
  if (problem)
    fail(
      "invalid",
      `The copy is not as it was written: ${problem.path} ${problem.message}${more.length > 0 ? ` And ${more.length} more.` : ""}`,
      { code: "not_as_written" },
    );
  const facts = factsOf(from);
  const half = `${to}.half`;
  try {
    rmSync(half, { force: true });
    copyFileSync(from, half, constants.COPYFILE_EXCL);
    chmodSync(half, 0o600);
    renameSync(half, to);
  } finally {
    rmSync(half, { force: true });
  }
  return facts;
}
