// Reads for reports, on a connection and in a thread of its own, so that none of them ever keeps a commit waiting. Long
// readings give way to short ones every few milliseconds.
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import type { Entry, LedgerQuery, Listed, Page, Problem, Total } from "tollgate/plugin";
import { listed, sizeOf } from "../book/page.ts";
import { toEntry } from "../book/row.ts";
import { totalling, type Summand, type TotalsQuery } from "../book/totals.ts";
import { auditor, fromArray, headOf, links, type Head } from "./chain.ts";
import { COLUMNS, fromStored, parse, type Stored } from "./columns.ts";

/** Rows, or commits, read in one go. */
const STRIDE = 2_000;

export function createReader({ file }: { file: string }) {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  function big(sql: string) {
    const statement = db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }

  const last = (): number => Number(db.prepare("SELECT max(seq) AS seq FROM entry").get()!["seq"]);

  return {
    entries(query: LedgerQuery, page?: Page): Listed<Entry> {
      const size = sizeOf(page);
      const [where, values] = conditions(query);
      const found = big(`SELECT * FROM entry WHERE seq > ? AND ${where} ORDER BY seq LIMIT ?`).all(
        Number(page?.after ?? 0),
        ...values,
        size + 1,
      ) as unknown as Stored[];
      return listed(
        found.map((stored) => toEntry(fromStored(stored), Number(stored.seq))),
        size,
        ({ seq }) => String(seq),
      );
    },
    async totals({ by, ...query }: TotalsQuery): Promise<readonly Total[]> {
      const [where, values] = conditions(query);
      const kind =
        query.state === undefined
          ? "kind <> 'reserve' AND state <> 'void'"
          : `kind = '${query.state === "open" ? "reserve" : "settle"}'`;
      const rows = big(
        `SELECT seq, kind, at, key, provider, model, labels, usage, cost FROM entry WHERE seq > ? AND seq <= ? AND ${kind} AND ${where} ORDER BY seq LIMIT ?`,
      );
      const sums = totalling(by);
      const end = last();
      for (let seq = 0; ; await setImmediate()) {
        const found = rows.all(seq, end, ...values, STRIDE) as unknown as Stored[];
        for (const stored of found) sums.add(summand(stored));
        if (found.length < STRIDE) return sums.totals();
        seq = Number(found.at(-1)!.seq);
      }
    },
    verify: () => verify(file),
    holds: (hash: string): boolean =>
      db.prepare("SELECT 1 FROM segment WHERE hash = ?").get(hash) !== undefined,
    head: (): Head => headOf(db),
    close: () => db.close(),
  };
}

export type Reader = ReturnType<typeof createReader>;

/** On one snapshot, however long it takes, while the gateway goes on writing. */
async function verify(file: string): Promise<readonly Problem[]> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  try {
    db.exec("BEGIN");
    const problems: Problem[] = [];
    let steps = 0;
    for (const problem of links(db, 1)) {
      if (problem) problems.push(problem);
      if (++steps % 500 === 0) await setImmediate();
    }
    // Sums over entries that were changed would say nothing more.
    if (problems.length > 0) return problems;
    const audit = auditor(db);
    const rows = db.prepare(
      `SELECT ${COLUMNS.join(", ")} FROM entry WHERE seq > ? ORDER BY seq LIMIT ?`,
    );
    rows.setReadBigInts(true);
    rows.setReturnArrays(true);
    for (let seq = 0; ; await setImmediate()) {
      const found = rows.all(seq, STRIDE) as unknown as unknown[][];
      for (const values of found) audit.add(fromArray(values));
      if (found.length < STRIDE) break;
      seq = Number(found.at(-1)![0]);
    }
    return audit.problems();
  } finally {
    db.close();
  }
}

function conditions(query: LedgerQuery): [where: string, values: SQLInputValue[]] {
  const parts: string[] = ["1"];
  const values: SQLInputValue[] = [];
  const is = (part: string, value: SQLInputValue | undefined): void => {
    if (value === undefined) return;
    parts.push(part);
    values.push(value);
  };
  is("key = ?", query.key);
  is("attempt = ?", query.attempt);
  is("upstream_id = ?", query.upstreamId);
  is("at >= ?", query.from);
  is("at < ?", query.to);
  is("state = ?", query.state);
  if (query.state === "open") parts.push("attempt IN (SELECT attempt FROM open)");
  return [parts.join(" AND "), values];
}

const summand = (s: Stored): Summand => ({
  kind: s.kind as Summand["kind"],
  at: Number(s.at),
  key: s.key as string,
  target: { provider: s.provider as string, model: s.model as string },
  labels: parse(s.labels)!,
  usage: parse(s.usage)!,
  costNano: s.cost as bigint | null,
});
