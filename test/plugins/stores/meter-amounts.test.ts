// A commit contains the ID of each meter once. Rows, single rows of a commit, and the view of the
// file have the IDs with each amount, also in a file of an earlier version.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { Reserve } from "tollgate/plugin";
import {
  decodeCommit,
  encodeCommit,
  extractRow,
  reserveRow,
  type LedgerRow,
  type MeterAmount,
} from "tollgate/store";
import { createBatchEncoder } from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";

const IDS = ["requests|day|0|key:a", "nano_usd|total|0|~session.x~60~y", 'tokens|minute|0|"|\\'];

function reserveOf(attempt: string, claims: Reserve["claims"] = []): Reserve & { at: number } {
  return {
    do: "reserve",
    at: 1,
    attempt,
    request: attempt,
    number: 1,
    key: "k",
    target: { provider: "p", model: "m", protocol: null, credential: "c" },
    privacy: "off",
    labels: {},
    claims,
    holdNano: 1n,
    price: null,
  };
}

test("rows of a commit, and single rows, have all IDs", () => {
  const amount = fc.tuple(fc.constantFrom(...IDS), fc.bigInt({ min: 0n, max: 2n ** 70n }));
  const few = fc.array(amount, { maxLength: 4 });
  // More amounts than have a place.
  const many = fc.array(amount, { minLength: 60, maxLength: 70 });
  const taken: fc.Arbitrary<readonly MeterAmount[]> = fc.oneof(
    { arbitrary: few, weight: 9 },
    { arbitrary: many, weight: 1 },
  );
  fc.assert(
    fc.property(fc.array(taken, { maxLength: 6 }), (all) => {
      const rows = all.map((one, i): LedgerRow => reserveRow(reserveOf(`${i}`), "me", one));
      const commit = encodeCommit("me", rows);
      expect(decodeCommit(commit)).toEqual(rows);
      for (const [i, row] of rows.entries())
        expect(decodeCommit(extractRow(commit, i))).toEqual([row]);
    }),
  );
});

test("the file contains an ID once per commit, and the view with each amount", () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-meters-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ledger.db");
  const settings = { file, durability: "process", ballastMb: 0 } as const;
  const limit = { scope: "team", unit: "requests", max: 100, per: "day" } as const;
  const budget = { scope: "team", unit: "nano_usd", max: 100n, per: "total" } as const;
  const claims = (take: bigint) => [
    { ...limit, take },
    { ...budget, take: take + 10n },
  ];
  const amounts = (take: number) =>
    JSON.stringify([
      ["requests|day|0|team", `${take}`],
      ["nano_usd|total|0|team", `${take + 10}`],
    ]);
  const open = (): { writer: Writer; packer: ReturnType<typeof createBatchEncoder> } => ({
    writer: new Writer(settings, "me"),
    packer: createBatchEncoder(),
  });
  let { writer, packer } = open();
  writer.apply(
    packer.encode([reserveOf("a", claims(1n)), reserveOf("none"), reserveOf("b", claims(2n))]),
  );
  writer.close();

  // As a file of the version before, which had the same tables and another view.
  const db = new DatabaseSync(file);
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  db.exec(
    `DROP VIEW entry; CREATE VIEW entry AS SELECT 1 AS meter_amounts; PRAGMA user_version = ${version - 1}`,
  );
  db.close();

  ({ writer, packer } = open());
  writer.apply(packer.encode([reserveOf("c", claims(3n))]));
  writer.apply(packer.encode([reserveOf("d", claims(4n))]));
  writer.close();
  const found = new DatabaseSync(file, { readOnly: true });
  const texts = found.prepare("SELECT rows FROM batch ORDER BY first").all() as { rows: string }[];
  expect(texts.map(({ rows }) => rows.split("requests|day|").length - 1)).toEqual([1, 1, 1]);
  expect(
    found
      .prepare("SELECT attempt, meter_amounts AS of FROM entry WHERE kind = 'reserve' ORDER BY seq")
      .all()
      .map((row) => ({ ...row })),
  ).toEqual([
    { attempt: "a", of: amounts(1) },
    { attempt: "none", of: "[]" },
    { attempt: "b", of: amounts(2) },
    { attempt: "c", of: amounts(3) },
    { attempt: "d", of: amounts(4) },
  ]);
  found.close();
});
