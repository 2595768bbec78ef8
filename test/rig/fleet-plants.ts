// Defects for the fleet's rig to find, each planted in the function that decides in the database: what a line of it is there for.

interface Plant {
  /** Of the gate, as the database prints it. */
  readonly line: RegExp;
  readonly instead: string;
}

export const PLANTS: Readonly<Record<string, Plant>> = {
  // What open calls hold is not held.
  "no-hold": { line: /m\.held - x\.unhold \+ x\.take/g, instead: "m.held - x.unhold" },
  // What was used is forgotten when its call ends.
  "no-count": { line: /THEN m\.level \+ x\.used ELSE/g, instead: "THEN m.level ELSE" },
};

export async function planted(name: string, sql: (text: string) => Promise<string>): Promise<void> {
  if (name === "") return;
  const plant = PLANTS[name];
  if (!plant)
    throw new Error(`No such plant: ${name}. There are ${Object.keys(PLANTS).join(", ")}.`);
  const gate = await sql(
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'apply\\_%' ORDER BY proname DESC LIMIT 1",
  );
  const changed = gate.replace(plant.line, plant.instead);
  if (changed === gate) throw new Error(`The gate has no line for ${name}.`);
  await sql(changed);
}

/** Locks that were taken crosswise; the database ends one of the two, and the store would try again and hide it. */
export async function deadlocksIn(sql: (text: string) => Promise<string>): Promise<string[]> {
  const many = await sql(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return many === "0" ? [] : [`${many} deadlocks`];
}
