// Defects for the fleet's rigs to find: most are planted in a function that decides in the database, what a line of it is there for.
import type { ChangedSource } from "../mutants/changed-source.ts";

/** In each gateway itself. */
export const IN_GATEWAYS = {
  // A client has its whole answer before the row that says what it cost is durable.
  "late-settle": {
    in: "pipeline/stages/present.ts",
    line: "void row.then(() => this.#onRowDurable());",
    instead: "void row; this.#onRowDurable();",
  },
} as const satisfies Readonly<Record<string, ChangedSource>>;

interface Plant {
  /** The function. */
  readonly in: "apply_batch" | "return_dead_leases" | "heartbeat";
  /** Of it, as the database prints it. */
  readonly line: RegExp;
  readonly instead: string;
}

/** The statement that locks meters, in the order in which they were sent; what it says of them keeps it. */
const LOCKED =
  /string_agg\(((?:(?!string_agg)[^])*), ';'\), array_agg\(m\.place\)((?:(?!string_agg)[^])*?)LIMIT cardinality\(m_id\)\) x CROSS JOIN/g;
const lockedBy = (order: string): string =>
  `string_agg($1, ';' ORDER BY x.ord), array_agg(m.place ORDER BY x.ord)$2 ORDER BY ${order} LIMIT cardinality(m_id)) x CROSS JOIN`;

export const PLANTS: Readonly<Record<string, Plant>> = {
  // What open calls hold is not held.
  "no-hold": {
    in: "apply_batch",
    line: /m\.reserved - x\.unhold \+ x\.take/g,
    instead: "m.reserved - x.unhold",
  },
  // What was used is forgotten when its call ends.
  "no-count": {
    in: "apply_batch",
    line: /THEN m\.level \+ x\.used ELSE/g,
    instead: "THEN m.level ELSE",
  },
  // What was seen without locks is believed.
  "no-guard": { in: "apply_batch", line: /RAISE EXCEPTION 'full'[^;]*;/, instead: "NULL;" },
  // Nodes lock the same rows in another order each.
  crossed: {
    in: "apply_batch",
    line: LOCKED,
    instead: lockedBy(
      "CASE WHEN p_node % 2 = 0 THEN x.id END, CASE WHEN p_node % 2 = 1 THEN x.id END DESC",
    ),
  },
  // Or as it comes.
  unsorted: { in: "apply_batch", line: LOCKED, instead: lockedBy("random()") },
  // A call that is over is ended once more, and one that is another node's.
  "no-once": { in: "apply_batch", line: /RAISE EXCEPTION 'not open'[^;]*;/, instead: "NULL;" },
  // A node that was taken for dead goes on.
  "no-fence": { in: "apply_batch", line: / AND state = 'live'/g, instead: "" },
  // Batches come in any order.
  "no-turn": { in: "apply_batch", line: / AND n = p_n - 1/g, instead: "" },
  // After a silence of the database each takes the others for dead.
  "no-patience": { in: "heartbeat", line: /NOT silent AND /, instead: "" },
  // What a dead node has set aside for when it is apart is given back, though it may have been spent.
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
    throw new Error(`No such plant: ${name}. There are ${Object.keys(PLANTS).join(", ")}.`);
  const sound = await sql(
    `SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE '${plant.in}\\__' ORDER BY proname DESC LIMIT 1`,
  );
  const changed = sound.replaceAll(new RegExp(plant.line.source, "g"), plant.instead);
  if (changed === sound) throw new Error(`The database has no line for ${name}.`);
  await sql(changed);
}

/** Locks that were taken crosswise; the database ends one of the two, and the store would try again and hide it. */
export async function deadlocksIn(sql: (text: string) => Promise<string>): Promise<string[]> {
  const many = await sql(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return many === "0" ? [] : [`${many} deadlocks`];
}
