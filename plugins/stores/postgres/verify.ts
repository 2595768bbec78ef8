// Reads all that was written, and says what of it cannot be true: each node's chain, the one chain of all, what open calls hold, and the records of
// keys and accounts.
import type { Problem } from "tollgate/plugin";
import { createHash } from "node:crypto";
import { fromJson, type Taken } from "tollgate/store";
import { bytes } from "./exact.ts";
import type { Ask, Row } from "./line.ts";
import { kindOf } from "./calls.ts";
import { hashOf, lineOf } from "./rows.ts";
import { COLUMNS } from "./tables.ts";

/** Batches that are read at once. */
const STRIDE = 2_000;
/** More than these are not listed one by one. */
const MOST = 100;

export async function verifyOf(
  ask: Ask,
  s: string,
  numbered: () => Promise<void>,
): Promise<readonly Problem[]> {
  await numbered();
  const problems: Problem[] = [];
  const say = (path: string, message: string) =>
    void (problems.length < MOST && problems.push({ path, message }));
  const nodes = await ask({ text: `SELECT epoch, id, n, head FROM ${s}.node ORDER BY epoch` });
  for (const node of nodes) await chainOf(ask, s, node, say);
  await linksOf(ask, s, say);
  await heldOf(ask, s, say);
  await recordsOf(ask, s, say);
  return problems;
}

type Say = (path: string, message: string) => void;

async function chainOf(ask: Ask, s: string, node: Row, say: Say): Promise<void> {
  const [epoch, id] = [node["epoch"]!, node["id"]!];
  let n = 0;
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const [batches, entries, notes] = await Promise.all([
      ask({
        text: `SELECT n, hash, entries FROM ${s}.batch WHERE node = $1 AND n > $2 AND n <= $3 ORDER BY n`,
        values: [epoch, n, n + STRIDE],
      }),
      ask({
        text: `SELECT n, ${COLUMNS.join(", ")} FROM ${s}.entry WHERE node = $1 AND n > $2 AND n <= $3 ORDER BY n, i`,
        values: [epoch, n, n + STRIDE],
      }),
      ask({
        text: `SELECT n, kind, id, text FROM ${s}.note WHERE node = $1 AND n > $2 AND n <= $3 ORDER BY n, i`,
        values: [epoch, n, n + STRIDE],
      }),
    ]);
    const lines = linesOf(entries, notes);
    for (const batch of batches) {
      if (Number(batch["n"]) !== n + 1) {
        say(`/node/${id}/${n + 1}`, "The batch is gone.");
        n = Number(batch["n"]) - 1;
      }
      n++;
      const said = lines.get(String(n)) ?? { lines: [], entries: 0 };
      const hash = bytes(batch["hash"]!);
      if (said.entries !== Number(batch["entries"]))
        say(
          `/node/${id}/${n}`,
          `The batch has ${said.entries} rows, and was written with ${batch["entries"]}.`,
        );
      else if (!hashOf(head, said.lines).equals(hash))
        say(
          `/node/${id}/${n}`,
          "The batch is not as it was written, or what came before it is not.",
        );
      lines.delete(String(n));
      head = hash;
    }
    for (const other of lines.keys())
      say(`/node/${id}/${other}`, "There are rows of a batch that was never written.");
    if (batches.length < STRIDE) break;
  }
  const [last] = await ask({ text: `SELECT n FROM ${s}.node WHERE epoch = $1`, values: [epoch] });
  if (Number(last?.["n"]) < n || n < Number(node["n"]))
    say(`/node/${id}`, `It wrote ${node["n"]} batches, and ${n} are there.`);
}

interface Lines {
  readonly lines: string[];
  entries: number;
}

function linesOf(entries: readonly Row[], notes: readonly Row[]): Map<string, Lines> {
  const of = new Map<string, Lines>();
  const at = (n: string): Lines => {
    let found = of.get(n);
    if (!found) of.set(n, (found = { lines: [], entries: 0 }));
    return found;
  };
  for (const row of entries) {
    const found = at(row["n"]!);
    found.entries++;
    found.lines.push(lineOf(COLUMNS.map((name) => row[name] ?? null)));
  }
  for (const { n, kind, id, text } of notes) at(n!).lines.push(lineOf([kind!, id!, text!]));
  return of;
}

/** The one chain of all batches, in the order of their numbers. */
async function linksOf(ask: Ask, s: string, say: Say): Promise<void> {
  const [chain] = await ask({ text: `SELECT pos, link FROM ${s}.chain` });
  const rows = await ask({
    text: `SELECT node, n, hash, entries, pos, link FROM ${s}.batch WHERE pos < $1 OR (pos = $1 AND entries = 0) ORDER BY pos, entries, node, n`,
    values: [chain!["pos"]!],
  });
  // Batches without entries share a number with what follows: each is found by what it links to.
  let head: Buffer = Buffer.alloc(0);
  const waiting = new Map<string, Row[]>();
  for (const row of rows) waiting.set(row["pos"]!, [...(waiting.get(row["pos"]!) ?? []), row]);
  for (const [pos, group] of waiting) {
    const left = new Set(group);
    while (left.size > 0) {
      const found = [...left].find((row) => linkOf(head, row).equals(bytes(row["link"]!)));
      if (!found) {
        say(`/entries/${pos}`, "The chain of all batches does not go on from here.");
        return;
      }
      head = bytes(found["link"]!);
      left.delete(found);
    }
  }
  const [now] = await ask({ text: `SELECT pos, link FROM ${s}.chain` });
  if (
    now!["pos"] === chain!["pos"] &&
    now!["link"] === chain!["link"] &&
    !bytes(chain!["link"]!).equals(head)
  )
    say("/entries", "The chain of all batches was cut.");
}

function linkOf(head: Uint8Array, { node, n, hash }: Row): Buffer {
  const number = Buffer.alloc(12);
  number.writeInt32BE(Number(node), 0);
  number.writeBigInt64BE(BigInt(n!), 4);
  return createHash("sha256").update(head).update(number).update(bytes(hash!)).digest();
}

/** What meters say that open calls hold, and what those say; as of one moment. */
async function heldOf(ask: Ask, s: string, say: Say): Promise<void> {
  const [row] = await ask({
    text: `SELECT (SELECT coalesce(json_agg(json_build_array(id, held::text)), '[]') FROM ${s}.meter WHERE held <> 0) AS meters,
      (SELECT coalesce(json_agg(e.rest), '[]') FROM ${s}.open o
        JOIN ${s}.entry e ON e.attempt = o.attempt AND e.began = o.began AND e.kind = 0) AS open`,
  });
  const held = new Map<string, bigint>();
  for (const rest of JSON.parse(row!["open"]!) as string[])
    for (const [id, amount] of fromJson<{ taken: readonly Taken[] }>(rest).taken)
      if (kindOf(id).period === 0) held.set(id, (held.get(id) ?? 0n) + amount);
  for (const [id, amount] of JSON.parse(row!["meters"]!) as [string, string][]) {
    if ((held.get(id) ?? 0n) !== BigInt(amount))
      say(`/meters/${id}`, `It holds ${amount}, and open calls hold ${held.get(id) ?? 0n}.`);
    held.delete(id);
  }
  for (const [id, amount] of held)
    if (amount !== 0n) say(`/meters/${id}`, `It holds nothing, and open calls hold ${amount}.`);
}

/** A record that no command wrote. */
async function recordsOf(ask: Ask, s: string, say: Say): Promise<void> {
  for (const [kind, table, id] of [
    ["key", "key", "digest"],
    ["account", "account", "id"],
  ] as const) {
    const rows = await ask({
      text: `SELECT r.${id} AS id FROM ${s}.${table} r WHERE NOT EXISTS
        (SELECT 1 FROM ${s}.note n WHERE n.kind = $1 AND n.id = r.${id} AND n.text = r.record)`,
      values: [kind],
    });
    for (const row of rows)
      say(`/${kind}s/${row["id"]}`, `This ${kind} is not as any command has written it.`);
  }
}
