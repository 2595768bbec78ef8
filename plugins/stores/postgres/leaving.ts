// This ledger on its way into another store: rows by their numbers, and the rest once no gateway is open on it.
import {
  fail,
  type AccountRecord,
  type AuditEnd,
  type AuditEntry,
  type KeyRecord,
  type MovedMeter,
  type MovedOut,
  type MovedRest,
  type MovedRows,
  type Price,
  type Usage,
} from "tollgate/plugin";
import { fromJson, movedRow } from "tollgate/store";
import { readBase } from "./pruned.ts";
import type { Ask } from "./line.ts";
import { close } from "./reads.ts";
import { joined, rowOf, SELECTED, type Found } from "./rows.ts";
import { SPENT } from "./slicing.ts";
import { totalsOf } from "./totals.ts";

/** Rows of a page. */
const PAGE = 5_000;
/** What rows of both stores have to come to. */
export const COMPARED = ["key", "model", "state", "price"] as const;

/** `end`: its connection. */
export function leaving(ask: Ask, s: string, end: () => Promise<void>): MovedOut {
  return {
    rows: (after) => rowsAfter(ask, s, after),
    async quiet() {
      await ask({ text: "BEGIN" });
      await ask({
        text: "SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('lock_timeout', '5000', true)",
      });
      // A gateway that begins makes a row there, and waits.
      await ask({ text: `LOCK TABLE ${s}.node IN SHARE MODE` });
      const [row] = await ask({
        text: `SELECT count(*) AS many FROM ${s}.node WHERE state = 'live' AND alive + lease > clock_timestamp()`,
      });
      if (row!["many"] === "0") return;
      await ask({ text: "ROLLBACK" });
      fail("conflict", `Gateways are open on it: ${row!["many"]}.`, { code: "in_use" });
    },
    rest: () => restOf(ask, s),
    [Symbol.asyncDispose]: end,
  };
}

async function rowsAfter(ask: Ask, s: string, after: number): Promise<MovedRows> {
  if (after === 0) {
    await close(ask, s);
    // Reserves that stayed when rows were pruned, of calls that are settled in rows which are there.
    const stayed = await ask({
      text: `SELECT ${SELECTED} FROM ${s}.base o, json_array_elements(o.text::json -> 'carried') k
        JOIN ${s}.entry e ON e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int ${joined(s)}
        WHERE EXISTS (SELECT 1 FROM ${s}.entry l WHERE l.attempt = e.attempt AND l.began = e.began AND l.kind = 1)`,
    });
    const next = ((await readBase(ask, s))?.pos ?? 1) - 1;
    if (stayed.length > 0)
      return { rows: stayed.map((row) => movedRow(rowOf(row as Found))), next, more: true };
  }
  const rows = await ask({
    text: `SELECT b.pos + e.i AS seq, ${SELECTED} FROM ${s}.batch b JOIN ${s}.entry e ON e.node = b.node AND e.n = b.n ${joined(s)}
      WHERE b.pos >= coalesce((SELECT max(pos) FROM ${s}.batch WHERE pos <= $1::bigint + 1), 0)
        AND b.pos + e.i > $1::bigint ORDER BY b.pos + e.i LIMIT $2`,
    values: [after, PAGE],
  });
  return {
    rows: rows.map((row) => movedRow(rowOf(row as Found))),
    next: Number(rows.at(-1)?.["seq"] ?? after),
    more: rows.length === PAGE,
  };
}

async function restOf(ask: Ask, s: string): Promise<MovedRest> {
  await close(ask, s);
  const records = async <T>(table: string, order: string): Promise<T[]> =>
    (await ask({ text: `SELECT record FROM ${s}.${table} ORDER BY ${order}` })).map(({ record }) =>
      fromJson<T>(record!),
    );
  const prices = await ask({ text: `SELECT hash, price FROM ${s}.price ORDER BY hash` });
  const meters = await ask({
    text: `SELECT id, level + ${SPENT(s)} AS level, at, max, told FROM ${s}.meter m ORDER BY id`,
  });
  const open = await ask({
    text: `SELECT attempt, usage, cost FROM ${s}.open WHERE usage IS NOT NULL ORDER BY attempt`,
  });
  const shared = await ask({
    text: `SELECT name, encode(value, 'base64') AS value FROM ${s}.shared ORDER BY name`,
  });
  const [chain] = await ask({ text: `SELECT encode(link, 'hex') AS link FROM ${s}.chain` });
  return {
    keys: await records<KeyRecord>("key", "place"),
    accounts: await records<AccountRecord>("account", "id"),
    prices: prices.map(({ hash, price }) => [hash!, fromJson<Price>(price!)] as const),
    audit: await auditedIn(ask, s),
    meters: meters.map((row): MovedMeter => ({
      id: row["id"]!,
      level: BigInt(row["level"]!),
      at: Number(row["at"]),
      max: BigInt(row["max"]!),
      told: BigInt(row["told"]!),
    })),
    heard: open.map(
      ({ attempt, usage, cost }) =>
        [
          attempt!,
          JSON.parse(usage!) as Usage,
          typeof cost === "string" ? BigInt(cost) : null,
        ] as const,
    ),
    shared: shared.map(
      ({ name, value }) => [name!, Uint8Array.from(Buffer.from(value!, "base64"))] as const,
    ),
    pruned: await prunedOf(ask, s),
    head: chain!["link"]!,
    totals: await totalsOf(ask, s, { by: COMPARED }),
  };
}

async function auditedIn(ask: Ask, s: string): Promise<MovedRest["audit"]> {
  const rows = await ask({ text: `SELECT entry, ended FROM ${s}.audit ORDER BY seq` });
  return rows.map(
    ({ entry, ended }) =>
      [
        fromJson<AuditEntry>(entry!),
        typeof ended === "string" ? fromJson<AuditEnd>(ended) : undefined,
      ] as const,
  );
}

async function prunedOf(ask: Ask, s: string): Promise<MovedRest["pruned"]> {
  const base = await readBase(ask, s);
  if (!base) return undefined;
  const sums = await ask({
    text: `SELECT quarter, text FROM ${s}.sums WHERE n <= $1 ORDER BY n`,
    values: [base.sums],
  });
  return {
    rows: base.rows,
    since: base.since,
    till: base.till,
    sums: sums.map(({ quarter, text }) => [Number(quarter), text!] as const),
  };
}
