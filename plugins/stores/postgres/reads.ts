// What is asked of the store and changes nothing.
import type {
  AccountRecord,
  InstanceFacts,
  InstanceState,
  KeyRecord,
  Limit,
  LimitCount,
  LedgerQuery,
  LimitCrossing,
  Price,
  Store,
} from "tollgate/plugin";
import {
  claimed,
  createBook,
  fromJson,
  keyCursor,
  pageOf,
  pageSize,
  toEntry,
} from "tollgate/store";
import { meterOf } from "./exact.ts";
import { SPENT } from "./slicing.ts";
import type { Ask, Row } from "./line.ts";
import { texts } from "./literal.ts";
import { BLANK } from "./replay.ts";
import { clean, joined, rowOf, SELECTED, type Found } from "./rows.ts";
import { totalsOf } from "./totals.ts";
import { Values, where } from "./where.ts";

type Reads = Pick<Store, "key" | "keys" | "entries" | "totals"> &
  Required<Pick<Store, "accounts" | "counted" | "price" | "size" | "instances">>;

/** Batches that are looked through for a page. */
const NEAR = 100;
/** Batches that get their numbers at once. */
const CLOSED_AT_ONCE = 10_000;
/** Batches that are added up at once: also where each call has terms of its own it is over long before a statement may be. */
const SUMMED_AT_ONCE = 500;

/** Numbers what was committed: entries are listed by these. */
export async function close(ask: Ask, s: string): Promise<void> {
  while ((await closed(ask, s, true)) === CLOSED_AT_ONCE);
}

/** In the background. False: another gateway does it just now, and what this one has written last may not be in it. */
export async function closeSoon(ask: Ask, s: string): Promise<boolean> {
  const many = await closed(ask, s, false);
  if (many === CLOSED_AT_ONCE) await close(ask, s);
  return many !== null;
}

async function closed(ask: Ask, s: string, wait: boolean): Promise<number | null> {
  const [row] = await ask({
    text: `SELECT ${s}.close_1($1, $2) AS many`,
    values: [CLOSED_AT_ONCE, String(wait)],
  });
  const many = row!["many"] ?? null;
  return many === null ? null : Number(many);
}

/** Adds numbered entries to the sums of their days, a stride at a time. */
export async function summed(ask: Ask, s: string): Promise<void> {
  for (let many = 1; many > 0;) {
    const [row] = await ask({ text: `SELECT ${s}.sum_1($1) AS many`, values: [SUMMED_AT_ONCE] });
    many = Number(row?.["many"]);
  }
}

/** `ask`: for what a client waits for. `reports`: for what may take its time. `now`: the moment that a limit is counted at. */
export const readsOf = (
  ask: Ask,
  reports: Ask,
  s: string,
  now: (at: number) => number,
  numbered: () => Promise<void>,
): Reads => ({
  ...recordsOf(ask, s),
  ...ledgerOf(reports, s, numbered),
  counted: (limits, at) => countedOf(ask, s, limits, now(at)),
  async instances() {
    const rows = await ask({ text: instances(s) });
    return rows.map(stateOf);
  },
});

/** What commands have put there, whole. */
const recordsOf = (ask: Ask, s: string): Pick<Reads, "key" | "keys" | "accounts" | "price"> => ({
  async key(digest) {
    const [row] = await ask({
      text: `SELECT record FROM ${s}.key WHERE digest = $1`,
      values: [clean(digest)],
    });
    return row && fromJson<KeyRecord>(row["record"]!);
  },
  async keys(page) {
    const size = pageSize(page);
    const rows = await ask({
      text: `SELECT record FROM ${s}.key WHERE place > $1 ORDER BY place LIMIT $2`,
      values: [clean(page?.after ?? ""), size + 1],
    });
    return pageOf(
      rows.map(({ record }) => fromJson<KeyRecord>(record!)),
      size,
      keyCursor,
    );
  },
  async accounts(page) {
    const size = pageSize(page);
    const rows = await ask({
      text: `SELECT record FROM ${s}.account WHERE id > $1 ORDER BY id LIMIT $2`,
      values: [clean(page?.after ?? ""), size + 1],
    });
    return pageOf(
      rows.map(({ record }) => fromJson<AccountRecord>(record!)),
      size,
      ({ id }) => id,
    );
  },
  async price(hash) {
    const [row] = await ask({
      text: `SELECT price FROM ${s}.price WHERE hash = $1`,
      values: [clean(hash)],
    });
    return row && fromJson<Price>(row["price"]!);
  },
});

const DAY = 86_400_000;

/** The index on times names the rows of a day at most; the ledger's first batches are hardly ever in it. */
const isBrief = ({ from, to }: LedgerQuery): boolean =>
  from !== undefined && to !== undefined && to - from <= DAY;

/** Rows, and what they come to. */
const ledgerOf = (
  reports: Ask,
  s: string,
  numbered: () => Promise<void>,
): Pick<Reads, "entries" | "totals" | "size"> => ({
  async entries(query, page, of) {
    await numbered();
    of?.signal?.throwIfAborted();
    const size = pageSize(page);
    const values = new Values();
    const after = `${values.add(Number(page?.after ?? 0))}::bigint`;
    const conditions = `b.pos + e.i > ${after} AND ${where(query, s, values)}`;
    const most = values.add(size + 1);
    const from = `pos >= coalesce((SELECT max(pos) FROM ${s}.batch WHERE pos <= ${after} + 1), 0)`;
    const listed = `SELECT b.pos + e.i AS seq, ${SELECTED} FROM`;
    // The batches that come next fill most pages, where no index names the rows. All that there are would be put in order for each.
    const few = (query.attempt ?? query.upstreamId) !== undefined || isBrief(query);
    const near = few
      ? []
      : await reports({
          text: `${listed} (SELECT node, n, pos FROM ${s}.batch WHERE ${from} ORDER BY pos LIMIT ${NEAR} + 2 * ${most}) b
        CROSS JOIN LATERAL (SELECT * FROM ${s}.entry WHERE node = b.node AND n = b.n OFFSET 0) e ${joined(s)}
        WHERE ${conditions} ORDER BY b.pos, e.i LIMIT ${most}`,
          values: values.all,
        });
    const rows =
      near.length > size
        ? near
        : await reports({
            text: `${listed} ${s}.batch b JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n ${joined(s)}
              WHERE b.${from} AND ${conditions} ORDER BY b.pos + e.i LIMIT ${most}`,
            values: values.all,
          });
    return pageOf(
      rows.map((found) => toEntry(rowOf(found as Found), Number(found["seq"]))),
      size,
      ({ seq }) => String(seq),
    );
  },
  async totals(query, of) {
    of?.signal?.throwIfAborted();
    return totalsOf(reports, s, query);
  },
  async size() {
    const [row] = await reports({
      text: `SELECT (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relkind = 'r') AS bytes,
        (SELECT e.at FROM (SELECT node, n FROM ${s}.batch WHERE entries > 0 AND pos IS NOT NULL ORDER BY pos LIMIT 1) b
          JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n ORDER BY e.i LIMIT 1) AS oldest`,
      values: [s],
    });
    const oldest = row?.["oldest"];
    return {
      bytes: Number(row?.["bytes"] ?? 0),
      ...(oldest != null && { oldestAt: Number(oldest) }),
    };
  },
});

const instances = (s: string): string =>
  `SELECT DISTINCT ON (w.id) w.id, w.about, w.state, floor(extract(epoch FROM w.alive) * 1000)::bigint AS heard, w.ahead,
          CASE WHEN w.seen = f.keys || ' ' || f.accounts THEN 0
            ELSE floor(extract(epoch FROM clock_timestamp() - f.changed) * 1000)::bigint END AS lag,
          (SELECT count(*) FROM ${s}.open o WHERE o.node = w.epoch) AS open
        FROM ${s}.node w, ${s}.fleet f
        WHERE w.state = 'live' OR w.alive > clock_timestamp() - interval '1 day' ORDER BY w.id, w.epoch DESC`;

function stateOf(row: Row): InstanceState {
  const { id, about, state, heard, ahead, lag, open } = row;
  const more = {
    ...(typeof about === "string" && { about: JSON.parse(about) as InstanceFacts }),
    ...(typeof ahead === "string" && { aheadMs: Number(ahead) }),
    ...(state === "live" && { lagMs: Number(lag) }),
    open: Number(open),
  };
  return { instance: id!, state: state as InstanceState["state"], heard: Number(heard), ...more };
}

/** The book's own numbers, of meters as they are. */
async function countedOf(
  ask: Ask,
  s: string,
  limits: readonly Limit[],
  at: number,
): Promise<readonly LimitCount[]> {
  const ids = claimed(
    limits.map((limit) => ({ ...limit, take: 0n })),
    at,
    new Map(),
  ).map(({ meter }) => meter.id);
  const rows = await ask({
    text: `SELECT id, level + ${SPENT(s)} AS level, held - ${SPENT(s)} AS held, at, max, peak, told
      FROM ${s}.meter m WHERE id = ANY ($1::text[])`,
    values: [texts(ids)],
  });
  const book = createBook(BLANK, () => "");
  for (const row of rows) book.load(meterOf(row).meter);
  return book.counted(limits, at);
}

/** Crossings of which nothing says that they were told. */
export async function untoldOf(ask: Ask, s: string): Promise<readonly LimitCrossing[]> {
  const rows = await ask({
    text: `SELECT id, level, held, at, max, peak, told FROM ${s}.meter WHERE level > told AND max > 0 ORDER BY id`,
  });
  const book = createBook(BLANK, () => "");
  for (const row of rows) book.load(meterOf(row).meter);
  return book.untold();
}

/** The meter that a crossing is of. */
export const meterOfCrossing = ({ scope, unit, per, max, resetsAt }: LimitCrossing): string =>
  claimed([{ scope, unit, per, max, take: 0n }], resetsAt - 1, new Map())[0]!.meter.id;
