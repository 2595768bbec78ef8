// What stands for rows that were pruned, and how what is there proves it: the newest note that speaks of it has its hash and the last hash of the
// sums, and each chain goes on from where it was.
import { hash } from "node:crypto";
import type { Problem } from "tollgate/plugin";
import type { Ask, Row } from "./line.ts";
import { noteLine, wholeLine } from "./rows.ts";
import { COLUMNS } from "./columns.ts";

/** A reserve that stays, because later rows speak of its call, with the hash of its line. */
export type Carried = readonly [node: number, n: number, i: number, hash: string];
/** Up to where a node's batches are gone: the last one's number and hash, and a hash over its notes so far, which all stay. */
export type Anchor = readonly [node: number, n: number, head: string, notes: string];

export interface PrunedBase {
  /** The first entry that is there, and the link before it. */
  readonly pos: number;
  readonly link: string;
  readonly since: number;
  readonly till: number;
  /** Rows that are gone. */
  readonly rows: number;
  readonly at: number;
  /** How many sums stand for them. */
  readonly sums: number;
  readonly carried: readonly Carried[];
  readonly nodes: readonly Anchor[];
}

/** What a prune notes in the chain. */
export interface PrunedNote {
  readonly pos: number;
  readonly base: string;
  readonly sums: string;
}

export const textHash = (text: string): string => hash("sha256", text);

/** Sums follow on one another. */
export const sumsLink = (before: string, quarter: number, text: string): string =>
  hash("sha256", `${before}\n${quarter}\n${text}`);

/** Undefined: nothing was pruned yet. */
export async function readBase(ask: Ask, s: string): Promise<PrunedBase | undefined> {
  const [row] = await ask({ text: `SELECT text FROM ${s}.base` });
  return row && (JSON.parse(row["text"]!) as PrunedBase);
}

/** The hash of a reserve that stays. */
export const carriedHash = (row: Row): string =>
  textHash(wholeLine(COLUMNS.map((name) => row[name] ?? null)));

/** A hash over a node's notes up to a number. */
export async function notesHash(ask: Ask, s: string, node: number, n: number): Promise<string> {
  const rows = await ask({
    text: `SELECT n, i, kind, id, text, salt FROM ${s}.note WHERE node = $1 AND n <= $2 ORDER BY n, i`,
    values: [node, n],
  });
  return textHash(
    rows
      .map(
        ({ n: at, i, kind, id, text, salt }) => `${at} ${i} ${noteLine(kind!, id!, text!, salt!)}`,
      )
      .join("\n"),
  );
}

/** Whether what stands for old rows is what was written, and nothing else is left of them. */
export async function* checkBase(ask: Ask, s: string): AsyncGenerator<Problem, void> {
  const wrong = (message: string): Problem => ({ path: "/base", message });
  const [found] = await ask({ text: `SELECT pos, sums, text FROM ${s}.base` });
  const notes = await ask({ text: `SELECT text FROM ${s}.note WHERE kind = 'pruned'` });
  const said = notes
    .map(({ text }) => JSON.parse(text!) as PrunedNote)
    .reduce<PrunedNote | undefined>((a, b) => (a && a.pos > b.pos ? a : b), undefined);
  if (!found && !said) return;
  if (!said) return yield wrong("No note of the ledger says that anything was pruned.");
  const base = found && asBase(found["text"]!);
  if (
    !base ||
    textHash(found["text"]!) !== said.base ||
    Number(found["pos"]) !== said.pos ||
    Number(found["sums"]) !== base.sums
  )
    return yield wrong(
      `What stands for the rows before ${said.pos} was changed after it was written.`,
    );
  yield* checkSums(ask, s, base, said);
  for (const [node, n, , notes] of base.nodes)
    if ((await notesHash(ask, s, node, n)) !== notes)
      yield wrong(`Notes of node ${node} up to batch ${n} were changed after they were written.`);
  yield* checkCarried(ask, s, base);
}

function asBase(text: string): PrunedBase | undefined {
  try {
    return JSON.parse(text) as PrunedBase;
  } catch {
    return undefined;
  }
}

const SUMS_AT_ONCE = 500;

async function* checkSums(
  ask: Ask,
  s: string,
  base: PrunedBase,
  said: PrunedNote,
): AsyncGenerator<Problem, void> {
  let [before, n] = ["", 0];
  for (let going = true; going;) {
    const rows = await ask({
      text: `SELECT n, quarter, text, hash FROM ${s}.sums WHERE n > $1 AND n <= $2 ORDER BY n LIMIT $3`,
      values: [n, base.sums, SUMS_AT_ONCE],
    });
    for (const row of rows) {
      if (sumsLink(before, Number(row["quarter"]), row["text"]!) !== row["hash"])
        yield {
          path: `/sums/${row["n"]}`,
          message: "These sums were changed after they were written.",
        };
      before = row["hash"]!;
      n = Number(row["n"]);
    }
    going = rows.length === SUMS_AT_ONCE;
  }
  // As of one moment: a prune may add some meanwhile.
  const [more] = await ask({
    text: `SELECT EXISTS (SELECT 1 FROM ${s}.sums x, ${s}.base b WHERE x.n > b.sums)::text AS are`,
  });
  if (before !== said.sums || n !== base.sums || more!["are"] === "true")
    yield { path: "/base", message: "Sums of what was pruned are missing, or too many." };
}

/** Of what is gone only reserves are there that the base names, each as it was. */
async function* checkCarried(ask: Ask, s: string, base: PrunedBase): AsyncGenerator<Problem, void> {
  const named = new Map(base.carried.map(([node, n, i, its]) => [`${node}/${n}/${i}`, its]));
  for (const [node, n] of base.nodes)
    for (const row of await ask({
      text: `SELECT node, n, i, ${COLUMNS.join(", ")} FROM ${s}.entry WHERE node = $1 AND n <= $2`,
      values: [node, n],
    })) {
      const id = `${row["node"]}/${row["n"]}/${row["i"]}`;
      if (named.get(id) !== carriedHash(row))
        yield { path: `/carried/${id}`, message: "This reserve is not what was kept of it." };
      named.delete(id);
    }
  for (const id of named.keys())
    yield { path: `/carried/${id}`, message: "This reserve was kept, and it is not there." };
}
