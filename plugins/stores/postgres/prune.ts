// A prune from beginning to end: some rows at a time, each time in one transaction, noted in the chain of a node of its own.
import type { Pruned, PruneProgress } from "tollgate/plugin";
import { readBase, textHash, type PrunedNote } from "./pruned.ts";
import { cutOf, fold, oldestOpen, type FoldedRows } from "./fold.ts";
import type { Ask, Row } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { close, summed } from "./reads.ts";
import { hashOf, noteLine } from "./rows.ts";
import { newSalt } from "./salts.ts";

/** Entries that go at once at most. */
const MOST = 100_000;
/** What is in its way is there for a moment. */
const TRIES = 20;

interface Pruning {
  readonly node: number;
  n: number;
  head: Buffer;
}

export async function prune(
  ask: Ask,
  s: string,
  before: number,
  progress: (of: PruneProgress) => void = () => {},
): Promise<Pick<Pruned, "rows" | "longestMs">> {
  await close(ask, s);
  await summed(ask, s);
  let me: Pruning | undefined;
  let rows = 0;
  // What is written from now on is for a later run.
  const [chain] = await ask({ text: `SELECT pos FROM ${s}.chain` });
  const end = Number(chain!["pos"]);
  for (let tries = 0; tries < TRIES;) {
    const from = (await readBase(ask, s))?.pos ?? 1;
    const limit = Math.min(end, (await oldestOpen(ask, s))?.pos ?? Infinity);
    const cut = await cutOf(ask, s, { from, before, limit, most: MOST });
    if (!cut) break;
    me ??= await join(ask, s);
    if (!(await replace(ask, s, me, await fold(ask, s, cut, Date.now())))) {
      tries++;
      await summed(ask, s);
      continue;
    }
    tries = 0;
    rows += cut.to - cut.from;
    progress({ rows, of: rows });
  }
  await swept(ask, s);
  await ask({ text: `SELECT ${s}.shrink_1()` });
  return { rows, longestMs: 0 };
}

/** Terms that are looked at at once: a gateway that writes waits for so many. */
const SWEPT = 2_000;

/** Terms that no row names. */
async function swept(ask: Ask, s: string): Promise<void> {
  for (let at: Row | undefined = { p_node: "0", p_id: "0" }; at?.["p_node"] != null;)
    [at] = await ask({
      text: `SELECT p_node, p_id FROM ${s}.sweep_1($1::int, $2::bigint, $3)`,
      values: [at["p_node"], at["p_id"]!, SWEPT],
    });
}

/** A node that serves no client. */
async function join(ask: Ask, s: string): Promise<Pruning> {
  const [row] = await ask({
    text: `INSERT INTO ${s}.node (id, state, alive, lease) VALUES ('prune', 'left', '-infinity', '0') RETURNING epoch`,
  });
  return { node: Number(row!["epoch"]), n: 0, head: Buffer.alloc(0) };
}

/** False: the ledger has gone on in a way that the fold does not know of. */
async function replace(
  ask: Ask,
  s: string,
  me: Pruning,
  { cut, base, sums }: FoldedRows,
): Promise<boolean> {
  const text = JSON.stringify(base);
  const [last] =
    sums.length > 0
      ? [sums.at(-1)![3]]
      : (await ask({ text: `SELECT hash FROM ${s}.sums WHERE n = $1`, values: [base.sums] })).map(
          ({ hash }) => hash!,
        );
  const note = JSON.stringify({
    pos: base.pos,
    base: textHash(text),
    sums: last ?? "",
  } satisfies PrunedNote);
  const salt = newSalt();
  const head = hashOf(me.head, [noteLine("pruned", String(cut.to), note, salt)]);
  const [row] = await ask({
    text: `SELECT ${s}.prune_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::bigint[], $12::bigint[], $13::text[], $14::text[]) AS said`,
    values: [
      me.node,
      me.n + 1,
      head,
      note,
      salt,
      cut.from,
      cut.to,
      base.sums,
      text,
      base.carried.map(([node, n, i]) => `${node}/${n}/${i}`).join(" "),
      numbers(sums.map(([n]) => n)),
      numbers(sums.map(([, quarter]) => quarter)),
      texts(sums.map(([, , its]) => its)),
      texts(sums.map(([, , , its]) => its)),
    ],
  });
  if (row!["said"] !== "done") return false;
  me.n++;
  me.head = head;
  return true;
}
