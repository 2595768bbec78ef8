// Reads all that was written, and says what of it cannot be true: each node's chain, the one chain of all, what open calls hold, and the records of
// keys and accounts.
import type { Problem } from "tollgate/plugin";
import { all, bytes } from "./exact.ts";
import { checkBase, readBase, type Anchor, type PrunedBase } from "./pruned.ts";
import { kindOf } from "./calls.ts";
import { checkErased, isTakenOut } from "./erased.ts";
import type { Ask, Row } from "./line.ts";
import { stretches } from "./links.ts";
import { numbers } from "./literal.ts";
import { hashOf, noteLine, takenOf, termsLine } from "./rows.ts";
import { LINE, TERMS } from "./columns.ts";

/** Batches that are read at once. Of many more, rows grow old before they are looked at, and most of the time goes into collections. */
const STRIDE = 100;
/** Reads that are under way while one is looked at. */
const AHEAD = 2;
/** Terms that are known at a time. */
const MOST_TERMS = 100_000;
/** More than these are not listed one by one. */
const MOST = 100;

/** What is pruned or erased while it is looked at may look like a loss: then it is looked at again. */
const TRIES = 3;

export async function verifyOf(
  ask: Ask,
  s: string,
  numbered: () => Promise<void>,
): Promise<readonly Problem[]> {
  await numbered();
  for (let tries = 1; ; tries++) {
    const before = await goneBy(ask, s);
    const problems = await lookedAt(ask, s);
    if (problems.length === 0 || tries === TRIES || before === (await goneBy(ask, s)))
      return problems;
  }
}

/** Changes with all that is pruned or erased. */
async function goneBy(ask: Ask, s: string): Promise<string> {
  const [row] = await ask({
    text: `SELECT json_build_array((SELECT pos FROM ${s}.base), (SELECT sums FROM ${s}.base), (SELECT count(*) FROM ${s}.erased))::text AS it`,
  });
  return row!["it"]!;
}

async function lookedAt(ask: Ask, s: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const say = (path: string, message: string) =>
    void (problems.length < MOST && problems.push({ path, message }));
  const nodes = await ask({ text: `SELECT epoch, id, n, head FROM ${s}.node ORDER BY epoch` });
  for await (const { path, message } of checkBase(ask, s)) say(path, message);
  const base = await readBase(ask, s).catch(() => undefined);
  const anchors = new Map(base?.nodes.map((anchor) => [anchor[0], anchor]));
  const gone = await checkErased(ask, s, ({ path, message }) => say(path, message));
  for (const node of nodes)
    await chainOf(ask, s, node, { since: anchors.get(Number(node["epoch"])), gone }, say);
  await linksOf(ask, s, base, say);
  await heldOf(ask, s, say);
  await recordsOf(ask, s, say);
  return problems;
}

type Say = (path: string, message: string) => void;

/** `since`: where it goes on, where its beginning is pruned. `gone`: hashes of what was taken out. */
async function chainOf(
  ask: Ask,
  s: string,
  node: Row,
  { since, gone }: { since: Anchor | undefined; gone: ReadonlySet<string> },
  say: Say,
): Promise<void> {
  const [epoch, id, upTo] = [node["epoch"]!, node["id"]!, Number(node["n"])];
  let n = since?.[1] ?? 0;
  let head: Buffer = Buffer.from(since?.[2] ?? "", "hex");
  const terms = new ProvedTerms(ask, s, epoch, gone);
  const takenOut = (at: string) =>
    say(`/node/${id}/${at}`, "Text is gone from it that no operator has erased.");
  for await (const { batches, entries, notes } of stretchesOf(ask, s, epoch, { from: n, upTo })) {
    await terms.read(entries);
    for (const { n: at, salt } of notes) if (isTakenOut(salt!, gone)) takenOut(at!);
    for (const { n: at, terms: its } of entries) if (terms.of(its!).isTakenOut) takenOut(at!);
    const lines = linesOf(entries, notes, terms);
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
  }
  const [last] = await ask({
    text: `SELECT n, greatest(${["batch", "booked", "note"].map((name) => `(SELECT max(o.n) FROM ${s}.${name} o WHERE o.node = w.epoch)`).join(", ")}) AS last
      FROM ${s}.node w WHERE epoch = $1`,
    values: [epoch],
  });
  const there = n < upTo ? n : Number(last?.["last"] ?? n);
  if (n < upTo || Number(last?.["n"]) < there)
    say(`/node/${id}`, `It wrote ${last?.["n"]} batches, and ${there} are there.`);
}

interface Read {
  readonly batches: readonly Row[];
  readonly entries: readonly Row[];
  readonly notes: readonly Row[];
}

/** A node's batches after `from` up to `upTo`, with what is in them; while some are looked at the next ones are read. What it writes meanwhile is not read in part. */
async function* stretchesOf(
  ask: Ask,
  s: string,
  epoch: string,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): AsyncGenerator<Read, void> {
  const read = async (after: number): Promise<Read> => {
    const values = [epoch, after, Math.min(after + STRIDE, upTo)];
    const of = "WHERE node = $1 AND n > $2 AND n <= $3 ORDER BY n";
    const [batches, entries, notes] = await all([
      ask({ text: `SELECT n, hash, entries FROM ${s}.batch ${of}`, values }),
      ask({ text: `SELECT n, terms, ${LINE} AS line FROM ${s}.booked e ${of}, i`, values }),
      ask({ text: `SELECT n, kind, id, text, salt FROM ${s}.note ${of}, i`, values }),
    ]);
    return { batches: batches!, entries: entries!, notes: notes! };
  };
  const ahead: Promise<Read>[] = [];
  for (let after = from; after < upTo || ahead.length > 0; after += STRIDE) {
    if (after < upTo) {
      const next = read(after);
      // It is waited for later, or not at all.
      next.catch(() => undefined);
      ahead.push(next);
    }
    if (ahead.length > AHEAD || after >= upTo) yield await ahead.shift()!;
  }
}

/** Terms of one node that its rows name, as the chain has them. */
class ProvedTerms {
  readonly #by = new Map<string, { readonly line: string; readonly isTakenOut: boolean }>();
  readonly #ask: Ask;
  readonly #s: string;
  readonly #epoch: string;
  readonly #gone: ReadonlySet<string>;

  constructor(ask: Ask, s: string, epoch: string, gone: ReadonlySet<string>) {
    this.#ask = ask;
    this.#s = s;
    this.#epoch = epoch;
    this.#gone = gone;
  }

  async read(entries: readonly Row[]): Promise<void> {
    if (this.#by.size > MOST_TERMS) this.#by.clear();
    const missing = new Set(entries.map(({ terms }) => terms!).filter((id) => !this.#by.has(id)));
    if (missing.size === 0) return;
    const rows = await this.#ask({
      text: `SELECT id, ${TERMS.join(", ")} FROM ${this.#s}.terms WHERE node = $1 AND id = ANY ($2::bigint[])`,
      values: [this.#epoch, numbers([...missing])],
    });
    for (const row of rows)
      this.#by.set(row["id"]!, {
        line: termsLine(TERMS.map((name) => row[name]!)),
        // Labels are never written without a salt: what the chain has of them would pass for them.
        isTakenOut:
          (row["labels"] !== null && row["salt"] === null) || isTakenOut(row["salt"]!, this.#gone),
      });
  }

  of(id: string) {
    return this.#by.get(id) ?? NOWHERE;
  }
}

/** Terms that are gone prove nothing. */
const NOWHERE = { line: "", isTakenOut: false };

interface Lines {
  readonly lines: string[];
  entries: number;
}

function linesOf(
  entries: readonly Row[],
  notes: readonly Row[],
  terms: ProvedTerms,
): Map<string, Lines> {
  const of = new Map<string, Lines>();
  const at = (n: string): Lines => {
    let found = of.get(n);
    if (!found) of.set(n, (found = { lines: [], entries: 0 }));
    return found;
  };
  for (const row of entries) {
    const found = at(row["n"]!);
    found.entries++;
    found.lines.push(row["line"]! + terms.of(row["terms"]!).line);
  }
  for (const { n, kind, id, text, salt } of notes)
    at(n!).lines.push(noteLine(kind!, id!, text!, salt!));
  return of;
}

/** The one chain of all batches, in the order of their numbers. */
async function linksOf(ask: Ask, s: string, base: PrunedBase | undefined, say: Say): Promise<void> {
  const [chain] = await ask({ text: `SELECT pos, link FROM ${s}.chain` });
  let head: Buffer = Buffer.from(base?.link ?? "", "hex");
  const to = Number(chain!["pos"]);
  for await (const stretch of stretches(ask, s, { from: base?.pos ?? 0, to, head })) {
    head = stretch.head;
    if (stretch.broken !== undefined)
      return say(
        `/entries/${stretch.broken}`,
        "The chain of all batches does not go on from here.",
      );
  }
  const [now] = await ask({ text: `SELECT pos, link FROM ${s}.chain` });
  if (
    now!["pos"] === chain!["pos"] &&
    now!["link"] === chain!["link"] &&
    !bytes(chain!["link"]!).equals(head)
  )
    say("/entries", "The chain of all batches was cut.");
}

/** What meters say that open calls and slices hold, and what those say; as of one moment. */
async function heldOf(ask: Ask, s: string, say: Say): Promise<void> {
  const [row] = await ask({
    text: `SELECT (SELECT coalesce(json_agg(json_build_array(id, held::text)), '[]') FROM ${s}.meter WHERE held <> 0) AS meters,
      (SELECT coalesce(json_agg(e.rest), '[]') FROM ${s}.open o
        JOIN ${s}.booked e ON e.attempt = o.attempt AND e.began = o.began AND e.kind = 0) AS open,
      (SELECT coalesce(json_agg(json_build_array(meter, (amount + spent)::text)), '[]') FROM ${s}.slice) AS slices`,
  });
  const held = new Map<string, bigint>();
  for (const rest of JSON.parse(row!["open"]!) as (string | null)[])
    for (const [id, amount] of takenOf(rest))
      if (kindOf(id).period === 0) held.set(id, (held.get(id) ?? 0n) + amount);
  for (const [id, amount] of JSON.parse(row!["slices"]!) as [string, string][])
    held.set(id, (held.get(id) ?? 0n) + BigInt(amount));
  for (const [id, amount] of JSON.parse(row!["meters"]!) as [string, string][]) {
    if ((held.get(id) ?? 0n) !== BigInt(amount))
      say(
        `/meters/${id}`,
        `It holds ${amount}, and slices and open calls hold ${held.get(id) ?? 0n}.`,
      );
    held.delete(id);
  }
  for (const [id, amount] of held)
    if (amount !== 0n)
      say(`/meters/${id}`, `It holds nothing, and slices and open calls hold ${amount}.`);
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
