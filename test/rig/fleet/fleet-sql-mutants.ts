// Defects that the fleet's rigs must find. Most change a line of a function in the database.
import type { ChangedSource } from "../mutants/changed-source.ts";

/** In each gateway itself. */
export const IN_GATEWAYS = {
  // A client has its complete response before its cost is durable.
  "late-settle": {
    in: "pipeline/stages/present.ts",
    line: "void row.then(() => this.#onRowDurable());",
    instead: "void row; this.#onRowDurable();",
  },
} as const satisfies Readonly<Record<string, ChangedSource>>;

interface Plant {
  /** The function. */
  readonly in: "apply_batch" | "return_dead_leases" | "heartbeat";
  /** A part of it, as the database prints it. */
  readonly line: RegExp;
  readonly instead: string;
}

/** Locks meters in the order in which they were sent. The results keep this order. */
const LOCKED =
  /string_agg\(((?:(?!string_agg)[^])*), ';'\), array_agg\(m\.place\)((?:(?!string_agg)[^])*?)LIMIT cardinality\(m_id\)\) x CROSS JOIN/g;
const lockedBy = (order: string): string =>
  `string_agg($1, ';' ORDER BY x.ord), array_agg(m.place ORDER BY x.ord)$2 ORDER BY ${order} LIMIT cardinality(m_id)) x CROSS JOIN`;

export const PLANTS: Readonly<Record<string, Plant>> = {
  // Reservations of open calls do not count.
  "no-hold": {
    in: "apply_batch",
    line: /m\.reserved - x\.unhold \+ x\.take/g,
    instead: "m.reserved - x.unhold",
  },
  // Usage is removed when its call ends.
  "no-count": {
    in: "apply_batch",
    line: /THEN m\.level \+ x\.used ELSE/g,
    instead: "THEN m.level ELSE",
  },
  // Values that were read without locks are used.
  "no-guard": { in: "apply_batch", line: /RAISE EXCEPTION 'full'[^;]*;/, instead: "NULL;" },
  // Nodes lock the same rows in different orders.
  crossed: {
    in: "apply_batch",
    line: LOCKED,
    instead: lockedBy(
      "CASE WHEN p_node % 2 = 0 THEN x.id END, CASE WHEN p_node % 2 = 1 THEN x.id END DESC",
    ),
  },
  // Or in random order.
  unsorted: { in: "apply_batch", line: LOCKED, instead: lockedBy("random()") },
  // A call that has ended, or belongs to another node, is ended again.
  "no-once": { in: "apply_batch", line: /RAISE EXCEPTION 'not open'[^;]*;/, instead: "NULL;" },
  // A node whose lease expired continues.
  "no-fence": { in: "apply_batch", line: / AND state = 'live'/g, instead: "" },
  // Batches are accepted in any order.
  "no-turn": { in: "apply_batch", line: / AND n = p_n - 1/g, instead: "" },
  // After an outage of the database, each node expires the others.
  "no-patience": { in: "heartbeat", line: /NOT silent AND /, instead: "" },
  // The offline budget of a dead node is returned, although it may have been spent.
  "slice-given-back": {
    in: "return_dead_leases",
    line: /NOT i\.is_offline AND | AND NOT i\.is_offline/g,
    instead: "",
  },
};

export async function planted(name: string, sql: (text: string) => Promise<string>): Promise<void> {
  if (name === "") return;
  const plant = PLANTS[name];
  if (!plant)
    throw new Error(`Unknown plant "${name}". Available: ${Object.keys(PLANTS).join(", ")}.`);
  const sound = await sql(
    `SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE '${plant.in}\\__' ORDER BY proname DESC LIMIT 1`,
  );
  const changed = sound.replaceAll(new RegExp(plant.line.source, "g"), plant.instead);
  if (changed === sound) throw new Error(`The database has no line for ${name}.`);
  await sql(changed);
}

/**
 * Deadlocks: the database aborts one of the two transactions, and the store would retry and hide
 * it.
 */
export async function deadlocksIn(sql: (text: string) => Promise<string>): Promise<string[]> {
  const many = await sql(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return many === "0" ? [] : [`${many} deadlocks`];
}
