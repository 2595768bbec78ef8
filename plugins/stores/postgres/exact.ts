// The exact way: for batches that are not plain, for what cannot fit and for what others have changed. One transaction reads what there is of the
// batch's calls, locks its meters in their order, lets the book decide all of it, and writes what the book says.
import type { AccountRecord, KeyRecord, StoreCommand, Verdict } from "tollgate/plugin";
import { claimed, createBook, fromJson, newMeter, type Meter } from "tollgate/store";
import { kindOf } from "./calls.ts";
import { known, type Known } from "./known.ts";
import type { Ask, Row } from "./line.ts";
import { texts } from "./literal.ts";
import { joined, rowOf, SELECTED, type Found } from "./rows.ts";
import type { Booked, KnownTerms } from "./terms.ts";
import { fenced } from "./trouble.ts";
import { chained, write } from "./writing.ts";

/** The instance that writes, as far as its row in the database goes. */
export interface Writing {
  readonly instance: string;
  readonly epoch: number;
  readonly n: number;
  readonly head: Buffer;
}

/** What was written, for the node to remember. */
export interface Written {
  readonly n: number;
  readonly head: Buffer;
  readonly verdicts: readonly Verdict[];
  readonly t: number;
  readonly rows: Known["rows"];
  readonly booked: readonly Booked[];
  /** Calls that are over, of this node and of others. */
  readonly settled: readonly string[];
}

/** How it asks, and by whose clock limits count: `own` gives the moment of a command where the database's clock is not to. */
export interface Means {
  readonly ask: Ask;
  readonly schema: string;
  readonly own: ((command: StoreCommand) => number) | undefined;
  readonly terms: KnownTerms;
  /** Its commit is sent: from here on it may have happened. */
  readonly committing: (written: Written) => void;
}

const LIMITS = `SELECT set_config('lock_timeout', '1000', true), set_config('statement_timeout', '2000', true),
  set_config('idle_in_transaction_session_timeout', '2000', true)`;

/** All of them, or the first that went wrong, once all are answered. */
export async function all<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const answers = await Promise.allSettled(asked);
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  return answers.map((answer) => (answer as PromiseFulfilledResult<T>).value);
}

/** Checked commands, in their order; verdicts likewise. What it throws has not happened, unless it was committing. */
export async function exactly(
  batch: readonly StoreCommand[],
  me: Writing,
  means: Means,
): Promise<Written> {
  for (let more: readonly string[] = [], round = 0; ; round++) {
    const done = await attempt(batch, me, means, more);
    if (!("missing" in done)) return done;
    if (round > 3) throw new Error("The batch's meters could not be found out.");
    more = [...more, ...done.missing];
  }
}

async function attempt(
  batch: readonly StoreCommand[],
  me: Writing,
  means: Means,
  more: readonly string[],
): Promise<Written | { missing: readonly string[] }> {
  const { ask } = means;
  const begun: { yes: boolean } = { yes: false };
  try {
    const found = await look(batch, me, means);
    begun.yes = true;
    const { t, meters } = await lock(idsOf(batch, found, more, means.own), found.known.open, means);
    const book = createBook(found.known.journal, () => me.instance);
    for (const { meter, peak } of meters.values()) {
      book.load(meter);
      meter.peak = peak;
    }
    for (const call of found.known.open) book.restore(call);
    const verdicts = batch.map((command) => {
      found.known.telling(command);
      return book.apply({ ...command, at: means.own?.(command) ?? t });
    });
    const changed = [...book.changed()];
    const missing = changed.filter(({ id }) => !meters.has(id)).map(({ id }) => id);
    if (missing.length > 0) {
      await ask({ text: "ROLLBACK" });
      return { missing };
    }
    const settled = found.known.rows.filter(({ kind }) => kind === "settle");
    const chain = chained(found.known, { ...me, n: found.n, head: found.head }, means.terms);
    const written: Written = {
      n: chain?.n ?? found.n,
      head: chain?.head ?? found.head,
      verdicts,
      t,
      rows: found.known.rows,
      booked: chain?.rows ?? [],
      settled: settled.map((row) => row.attempt),
    };
    const asked = write(found.known, changed, chain, me.epoch, means);
    means.committing(written);
    await all([...asked, ask({ text: "COMMIT" })]);
    return written;
  } catch (error) {
    await ask({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}

interface Look {
  readonly known: Known;
  readonly t: number;
  readonly n: number;
  readonly head: Buffer;
}

/** What there is of the batch's calls and accounts; its open calls are locked, and its own number. */
async function look(
  batch: readonly StoreCommand[],
  { epoch, instance }: Writing,
  { ask, schema: s }: Means,
): Promise<Look> {
  const attempts = texts([...new Set(batch.flatMap((c) => ("attempt" in c ? [c.attempt] : [])))]);
  const accounts = batch.some((c) => c.do === "account");
  const digests = batch.flatMap((c) => (c.do === "key" ? [c.key.digest] : []));
  const [, , nodes, clock, open, rows, records, keys] = await all<readonly Row[]>([
    ask({ text: "BEGIN" }),
    ask({ text: LIMITS }),
    ask({
      text: `SELECT state, n, head FROM ${s}.node WHERE epoch = $1 FOR NO KEY UPDATE`,
      values: [epoch],
    }),
    ask({ text: CLOCK }),
    ask({
      text: `SELECT attempt, usage, cost FROM ${s}.open WHERE attempt = ANY ($1::text[]) ORDER BY attempt FOR UPDATE`,
      values: [attempts],
    }),
    ask({
      text: `SELECT ${SELECTED} FROM ${s}.entry e ${joined(s)} WHERE e.attempt = ANY ($1::text[]) ORDER BY e.kind`,
      values: [attempts],
    }),
    accounts
      ? ask({ text: `SELECT record FROM ${s}.account ORDER BY id FOR UPDATE` })
      : Promise.resolve([]),
    digests.length > 0
      ? ask({
          text: `SELECT record FROM ${s}.key WHERE digest = ANY ($1::text[]) ORDER BY digest FOR UPDATE`,
          values: [texts(digests)],
        })
      : Promise.resolve([]),
  ]);
  const [node] = nodes!;
  if (node?.["state"] !== "live") fenced();
  const heard = new Map(
    open!.map(({ attempt, usage, cost }) => [
      attempt!,
      usage === null || usage === undefined
        ? undefined
        : { usage: JSON.parse(usage), costNano: (cost ?? null) === null ? null : BigInt(cost!) },
    ]),
  );
  const accountsKept = records!.map(({ record }) => fromJson<AccountRecord>(record!));
  const keysKept = keys!.map(({ record }) => fromJson<KeyRecord>(record!));
  return {
    known: known(
      rows!.map((row) => rowOf(row as Found)),
      heard,
      {
        accounts: new Map(accountsKept.map((record) => [record.id, record])),
        keys: new Map(keysKept.map((record) => [record.digest, record])),
      },
      instance,
    ),
    t: Number(clock![0]!["t"]),
    n: Number(node!["n"]),
    head: bytes(node!["head"]!),
  };
}

/** The database's own time, in Unix milliseconds. */
export const CLOCK = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS t";

/** `\x…`, as the server writes bytes. */
export const bytes = (text: string): Buffer => Buffer.from(text.slice(2), "hex");

/** Meters that the batch may touch: of its claims, and of the calls that it ends or corrects. */
function idsOf(
  batch: readonly StoreCommand[],
  { known: { journal, open }, t }: Look,
  more: readonly string[],
  own: Means["own"],
): readonly string[] {
  const ids = new Set(more);
  for (const call of open) for (const [id] of call.taken) ids.add(id);
  for (const c of batch) {
    if (c.do === "reserve")
      for (const { meter } of claimed(c.claims, own?.(c) ?? t, NONE)) ids.add(meter.id);
    if (c.do === "settle" || c.do === "adjust")
      for (const [id] of journal.past(c.attempt)?.reserve.taken ?? []) ids.add(id);
  }
  return [...ids];
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();

type Locked = ReadonlyMap<string, { readonly meter: Meter; readonly peak: bigint }>;

/** Locked in the order of their names, and what they say without the calls that are restored after that. */
async function lock(
  ids: readonly string[],
  open: Known["open"],
  { ask, schema: s }: Means,
): Promise<{ t: number; meters: Locked }> {
  const list = texts(ids);
  const [, rows, clock] = await all([
    ask({
      text: `SELECT ${s}.lock_1($1::text[])`,
      values: [list],
    }),
    ask({
      text: `SELECT id, level, held, at, max, peak, told FROM ${s}.meter WHERE id = ANY ($1::text[])`,
      values: [list],
    }),
    ask({ text: CLOCK }),
  ]);
  const held = new Map<string, bigint>();
  for (const { taken } of open)
    for (const [id, amount] of taken) held.set(id, (held.get(id) ?? 0n) + amount);
  const meters = new Map(
    rows!.map((row) => {
      const { meter, peak } = meterOf(row);
      if (kindOf(meter.id).period === 0) meter.held -= held.get(meter.id) ?? 0n;
      return [meter.id, { meter, peak }];
    }),
  );
  return { t: Number(clock![0]!["t"]), meters };
}

/** A meter as its row says it. Loading it into a book forgets its peak, which is to be said again then. */
export function meterOf(row: Row): { meter: Meter; peak: bigint } {
  const meter = newMeter(row["id"]!);
  meter.level = BigInt(row["level"]!);
  meter.held = BigInt(row["held"]!);
  meter.at = Number(row["at"]);
  meter.max = BigInt(row["max"]!);
  meter.told = BigInt(row["told"]!);
  return { meter, peak: BigInt(row["peak"]!) };
}
