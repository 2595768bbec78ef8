// Invariants of every simulation: after each step by the database's rows, and at the end, when all
// calls have ended, by the provider's bill.
import { APPLY_BATCH_ARGUMENTS } from "../../../../plugins/stores/postgres/schema/apply-batch.ts";
import type { Row } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import type { SimulatedDatabase } from "./database.ts";
import { idOf, TAKE, type Budget, type Truth } from "./ground-truth.ts";

/** Results of the last check of the database. */
export interface Before {
  /** Nodes that may no longer write, with the number of their last batch. */
  readonly fenced: Map<string, string>;
  /** Leases that gateways may spend during an outage, by gateway. */
  slices: ReadonlyMap<string, string>;
}

/** After each step, between two transactions. */
export function stepLaws(
  database: SimulatedDatabase,
  budgets: readonly Budget[],
  before: Before,
  gaveBack: ReadonlySet<string>,
) {
  const wrong: string[] = [];
  const died: string[] = [];
  const members = new Set<string>();
  const ids = budgets.map((budget) => `"${idOf(budget)}"`).join(",");
  const rows =
    database.rows(`SELECT 'meter' AS kind, id, level::text AS a, reserved::text AS b FROM tollgate.meter WHERE id = ANY ('{${ids}}')
    UNION ALL SELECT 'node', epoch::text, state, n::text FROM tollgate.node WHERE state <> 'live'
    UNION ALL SELECT 'slice', meter, node, '' FROM tollgate.budget_lease WHERE is_offline ORDER BY 1, 2, 3`);
  const slices = new Map<string, string>();
  for (const { kind, id, a, b } of rows)
    if (kind === "meter") {
      const { max } = budgets.find((budget) => idOf(budget) === id)!;
      if (BigInt(a!) + BigInt(b!) > max) wrong.push(`${id} has ${a} used and ${b} held of ${max}`);
      const group = budgets.filter(({ maxMembers }) => maxMembers !== undefined).map(idOf);
      if (group.includes(id!)) members.add(id!);
      if (BigInt(b!) < 0n) wrong.push(`${id} has ${b} held`);
    } else if (kind === "slice") slices.set(`${id} of ${a}`, a!);
    else {
      const last = before.fenced.get(id!);
      if (last === undefined) died.push(`${id} ${a}`);
      else if (last !== b)
        wrong.push(`node ${id} is ${a} and has written batch ${b} after ${last}`);
      before.fenced.set(id!, b!);
    }
  for (const [slice, node] of before.slices)
    if (!slices.has(slice) && !gaveBack.has(node))
      wrong.push(`slice ${slice} is given back, and its gateway may have spent it`);
  const places = budgets.find(({ maxMembers }) => maxMembers !== undefined)?.maxMembers;
  if (places !== undefined && members.size > places)
    wrong.push(`a group of ${places} has the members ${[...members].join(" ")}`);
  before.slices = slices;
  return { wrong, died };
}

/**
 * Calls the admission function directly in a transaction that is rolled back: a call that is not
 * open, or belongs to another node, is not ended. A number out of order and a dead node are
 * rejected.
 */
export function gateLaws(database: SimulatedDatabase): string[] {
  const [node] = database.rows(
    "SELECT epoch, n FROM tollgate.node WHERE state = 'live' ORDER BY epoch LIMIT 1",
  );
  if (!node) return [];
  const others = database.rows(
    `SELECT attempt FROM tollgate.open_call WHERE node <> ${node["epoch"]} ORDER BY attempt LIMIT 1`,
  );
  const over = database.rows(
    "SELECT b.attempt FROM tollgate.ledger_row b WHERE b.kind = 1 ORDER BY b.attempt LIMIT 1",
  );
  const wrong: string[] = [];
  for (const { attempt } of [...others, ...over])
    if (asked(database, node, 1, attempt!) !== "TG003")
      wrong.push(`the gate ends ${attempt}, which is not open at node ${node["epoch"]}`);
  for (const step of [0, 2])
    if (asked(database, node, step) !== "behind")
      wrong.push(`the gate takes batch ${Number(node["n"]) + step} after batch ${node["n"]}`);
  const [dead] = database.rows(
    "SELECT epoch, n FROM tollgate.node WHERE state = 'dead' ORDER BY epoch DESC LIMIT 1",
  );
  if (dead && asked(database, dead, 1) !== "fenced")
    wrong.push(`the gate takes a batch of node ${dead["epoch"]}, which was taken for dead`);
  return wrong;
}

/** Result of a batch of this node: `step` after its last one, ending `attempt`. */
function asked(database: SimulatedDatabase, node: Row, step: number, attempt?: string): string {
  const values = APPLY_BATCH_ARGUMENTS.map(([name, type]) => {
    if (name === "p_node") return node["epoch"];
    if (name === "p_n") return String(Number(node["n"]) + step);
    if (name === "p_hash") return "'\\x00'";
    if (name === "p_at") return "NULL";
    if (type === "boolean") return "false";
    if (name === "s_attempt" && attempt !== undefined) return `ARRAY['${attempt}']`;
    return type.endsWith("[]") ? "'{}'" : "''";
  });
  const casts = values.map((value, i) => `${value}::${APPLY_BATCH_ARGUMENTS[i]![1]}`).join(", ");
  database.rows("BEGIN");
  try {
    return database
      .rows(`SELECT tollgate.apply_batch_1(${casts}) AS said`)[0]!
      ["said"]!.split(";")[0]!;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  } finally {
    database.rows("ROLLBACK");
  }
}

/** All calls have ended, and all gateways have sent their rows. */
export function endLaws(
  database: SimulatedDatabase,
  budgets: readonly Budget[],
  truth: Truth,
): string[] {
  const wrong: string[] = [];
  const rows =
    database.rows(`SELECT attempt, count(*) FILTER (WHERE kind = 0) AS begun, count(*) FILTER (WHERE kind = 1) AS ended,
      sum(cost) FILTER (WHERE kind > 0) AS cost, bool_or(outcome = 'recovered') AS recovered FROM tollgate.entry GROUP BY attempt`);
  const found = new Map(rows.map((row) => [row["attempt"]!, row]));
  const sums = new Map(budgets.map((budget) => [budget, 0n]));
  for (const [attempt, { begun, ended, cost, recovered }] of found) {
    const call = truth.calls.get(attempt)!;
    const written = BigInt(cost ?? 0);
    for (const budget of call.budgets) sums.set(budget, sums.get(budget)! + written);
    if (begun !== "1" || ended !== "1")
      wrong.push(`${attempt} begins ${begun} times and ends ${ended} times`);
    if (call.settled && written !== call.cost)
      wrong.push(`${attempt} cost ${call.cost} and is written with ${written}`);
    // Nothing was sent. A reserve that its gateway could not undo before it was killed is
    // estimated.
    if (
      call.state !== "sent" &&
      written !== 0n &&
      !(recovered === "t" && truth.killed.has(call.process))
    )
      wrong.push(`${attempt} was ${call.state} and is written with ${written}`);
    if (call.state === "sent" && !call.settled && written < (call.cost ?? 0n) && written !== TAKE)
      wrong.push(`${attempt} of a killed gateway cost ${call.cost} and is written with ${written}`);
  }
  for (const { attempt, state } of truth.calls.values())
    if (state === "sent" && !found.has(attempt)) wrong.push(`${attempt} was sent and has no row`);
  const meters = new Map(
    database.rows("SELECT id, level, reserved FROM tollgate.meter").map((row) => [row["id"]!, row]),
  );
  for (const [budget, sum] of sums) {
    const { level = "0", reserved = "0" } = meters.get(idOf(budget)) ?? {};
    if (BigInt(level!) !== sum || reserved !== "0")
      wrong.push(`${budget.scope} has ${level} used and ${reserved} held; its rows come to ${sum}`);
  }
  const [left] =
    database.rows(`SELECT (SELECT count(*) FROM tollgate.open_call) AS open, (SELECT count(*) FROM tollgate.budget_lease) AS slices,
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
