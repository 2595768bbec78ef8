// What must hold in every world: after each step by the database's rows, and at the end, when all calls are over, by the provider's bill.
import type { SimulatedDatabase } from "./database.ts";
import { idOf, TAKE, type Budget, type Truth } from "./truth.ts";

/** Nodes that may not write any more, with the number of their last batch. */
export type Fenced = Map<string, string>;

/** After each step, between two transactions. */
export function stepLaws(database: SimulatedDatabase, budgets: readonly Budget[], fenced: Fenced) {
  const wrong: string[] = [];
  const died: string[] = [];
  const ids = budgets.map((budget) => `'${idOf(budget)}'`).join(", ");
  const rows =
    database.rows(`SELECT 'meter' AS kind, id, level::text AS a, held::text AS b FROM tollgate.meter WHERE id IN (${ids})
    UNION ALL SELECT 'node', epoch::text, state, n::text FROM tollgate.node WHERE state <> 'live'`);
  for (const { kind, id, a, b } of rows)
    if (kind === "meter") {
      const { max } = budgets.find((budget) => idOf(budget) === id)!;
      if (BigInt(a!) + BigInt(b!) > max) wrong.push(`${id} has ${a} used and ${b} held of ${max}`);
      if (BigInt(b!) < 0n) wrong.push(`${id} has ${b} held`);
    } else {
      const before = fenced.get(id!);
      if (before === undefined) died.push(`${id} ${a}`);
      else if (before !== b)
        wrong.push(`node ${id} is ${a} and has written batch ${b} after ${before}`);
      fenced.set(id!, b!);
    }
  return { wrong, died };
}

/** All calls are over, and all gateways have told what they know. */
export function endLaws(
  database: SimulatedDatabase,
  budgets: readonly Budget[],
  truth: Truth,
): string[] {
  const wrong: string[] = [];
  const rows =
    database.rows(`SELECT attempt, count(*) FILTER (WHERE kind = 0) AS begun, count(*) FILTER (WHERE kind = 1) AS ended,
      sum(cost) FILTER (WHERE kind > 0) AS cost, bool_or(outcome = 'presumed') AS presumed FROM tollgate.entry GROUP BY attempt`);
  const found = new Map(rows.map((row) => [row["attempt"]!, row]));
  const sums = new Map(budgets.map((budget) => [budget, 0n]));
  for (const [attempt, { begun, ended, cost, presumed }] of found) {
    const call = truth.calls.get(attempt)!;
    const written = BigInt(cost ?? 0);
    for (const budget of call.budgets) sums.set(budget, sums.get(budget)! + written);
    if (begun !== "1" || ended !== "1")
      wrong.push(`${attempt} begins ${begun} times and ends ${ended} times`);
    if (call.settled && written !== call.cost)
      wrong.push(`${attempt} cost ${call.cost} and is written with ${written}`);
    // Nothing was sent. What its gateway could not take back before it was killed is estimated.
    if (
      call.state !== "sent" &&
      written !== 0n &&
      !(presumed === "t" && truth.killed.has(call.process))
    )
      wrong.push(`${attempt} was ${call.state} and is written with ${written}`);
    if (call.state === "sent" && !call.settled && written < (call.cost ?? 0n) && written !== TAKE)
      wrong.push(`${attempt} of a killed gateway cost ${call.cost} and is written with ${written}`);
  }
  for (const { attempt, state } of truth.calls.values())
    if (state === "sent" && !found.has(attempt)) wrong.push(`${attempt} was sent and has no row`);
  const meters = new Map(
    database.rows("SELECT id, level, held FROM tollgate.meter").map((row) => [row["id"]!, row]),
  );
  for (const [budget, sum] of sums) {
    const { level = "0", held = "0" } = meters.get(idOf(budget)) ?? {};
    if (BigInt(level!) !== sum || held !== "0")
      wrong.push(`${budget.scope} has ${level} used and ${held} held; its rows come to ${sum}`);
  }
  const [left] =
    database.rows(`SELECT (SELECT count(*) FROM tollgate.open) AS open, (SELECT count(*) FROM tollgate.slice) AS slices,
    (SELECT count(*) FROM (SELECT 1 FROM tollgate.batch GROUP BY node, n HAVING count(*) > 1) x) AS twice,
    (SELECT count(*) FROM tollgate.node w WHERE w.n <> (SELECT count(*) FROM tollgate.batch b WHERE b.node = w.epoch)) AS gaps`);
  for (const [what, words] of Object.entries({
    open: "calls are open",
    slices: "slices are set aside",
    twice: "batches have the number of another one",
    gaps: "nodes have other batches than their number says",
  }))
    if (left![what] !== "0") wrong.push(`${left![what]} ${words}`);
  return wrong;
}
