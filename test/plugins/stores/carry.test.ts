// A ledger of the first version of the file, as that version wrote it, opened by this one: every entry, every sum, every
// head that somebody may have noted down.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import type { Commands, Entry, Store } from "tollgate/plugin";
import { NOON, settle } from "../../../src/testing/store.ts";
import { left } from "../../../src/testing/store/bench.ts";
import { COLUMNS } from "../../../plugins/stores/sqlite/first-form.ts";
import { MIGRATIONS } from "../../../plugins/stores/sqlite/schema.ts";
import { onFile } from "./made.ts";

type Value = string | number | bigint | null;
type Old = { readonly [C in (typeof COLUMNS)[number]]: Value };

const BUDGET = `nano_usd|total|0|key:alice`;
const row = (more: Partial<Old> & Pick<Old, "kind" | "attempt">): Omit<Old, "seq"> => ({
  nth: "",
  request: `r-${more.attempt}`,
  n: 1,
  at: NOON,
  instance: "old",
  key: "alice",
  provider: "openai",
  model: "gpt-6",
  protocol: "chat-completions",
  credential: "main",
  privacy: "off",
  labels: '{"team":"][\\"ü"}',
  price: "p1",
  asked: null,
  taken: "[]",
  hold: 1_000,
  usage: "{}",
  cost: null,
  state: "open",
  outcome: "open",
  upstream_id: null,
  upstream_cost: null,
  parts: null,
  finish: null,
  ms: null,
  reason: null,
  actor: null,
  ...more,
});
const taken = JSON.stringify([[BUDGET, "1000"]]);
const asked =
  '{"model":"fast","frontend":"messages","protocol":"messages","lane":"translated","stream":true}';
const open = (attempt: string, more: Partial<Old> = {}) =>
  row({ kind: "reserve", attempt, asked, taken, ...more });
const over = (attempt: string, cost: Value, more: Partial<Old> = {}) =>
  row({
    kind: "settle",
    attempt,
    at: NOON + 1_000,
    usage: '{"input":10,"output":20}',
    cost,
    state: "exact",
    outcome: "ok",
    ...more,
  });

const COMMITS: readonly (readonly Omit<Old, "seq">[])[] = [
  [open("a"), open("b", { key: "bob", taken: "[]", hold: null, price: null })],
  [
    over("a", 700, {
      upstream_id: "up-a",
      upstream_cost: 9_007_199_254_740_993n,
      parts: '[{"model":"m","usage":{"output":2},"price":"p2","costNano":"9007199254740993"}]',
      finish: "stop",
      ms: '{"head":1.5,"total":20}',
    }),
  ],
  [
    over("b", 9_007_199_254_740_993n, { key: "bob", price: null, hold: null, taken: "[]" }),
    row({
      kind: "adjust",
      attempt: "a",
      nth: JSON.stringify([NOON + 2_000, "-200", "refund", "eve"]),
      at: NOON + 2_000,
      hold: null,
      cost: -200,
      state: "exact",
      outcome: "adjusted",
      reason: "refund",
      actor: "eve",
    }),
    open("c"),
  ],
  [open("d"), over("c", 300, { outcome: "presumed", state: "estimated" })],
];

/** The file as the first version left it after a crash: `d` is open, and something was heard of it. */
function firstVersion(): { file: string; heads: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-carry-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "ledger.db");
  const db = new DatabaseSync(file);
  db.exec(MIGRATIONS[0] as string);
  db.exec("PRAGMA user_version = 1");
  const insert = db.prepare(
    `INSERT INTO entry (${COLUMNS.join(", ")}) VALUES (${COLUMNS.map(() => "?").join(", ")})`,
  );
  const segment = db.prepare("INSERT INTO segment VALUES (?, ?, ?, ?)");
  const heads: string[] = [];
  let hash = "";
  let seq = 0;
  for (const [i, rows] of COMMITS.entries()) {
    const first = seq + 1;
    const next = createHash("sha256").update(hash);
    for (const one of rows) {
      const all = { ...one, seq: ++seq } as Old;
      const values = COLUMNS.map((column) => all[column]);
      insert.run(...values);
      next.update(JSON.stringify(values.map((value) => (value === null ? null : String(value)))));
    }
    hash = next.digest("hex");
    heads.push(hash);
    segment.run(i + 1, first, seq, hash);
  }
  db.exec(`
    INSERT INTO open VALUES ('d', 7, '{"output":3}', 250);
    INSERT INTO instance (name, pid, started, alive) VALUES ('old', 1, 0, 0);
    INSERT INTO key VALUES ('digest', '0:digest', '{"id":"alice","digest":"digest","created":0}');
    INSERT INTO price VALUES ('p1', '{"lines":[]}');
  `);
  // What was spent; what is held is told by the open calls.
  db.prepare("INSERT INTO meter VALUES (?, ?, ?, '0')").run(BUDGET, String(700 - 200 + 300), 0);
  db.close();
  return { file, heads };
}

const entries = async (store: Store, query = {}): Promise<readonly Entry[]> =>
  (await store.entries(query, { limit: 100 })).items;
const names = (found: readonly Entry[]) => found.map(({ attempt, kind }) => `${attempt} ${kind}`);

async function carried() {
  const { file, heads } = firstVersion();
  const made = await onFile(file);
  onTestFinished(() => made.end());
  const opened = await made.store.open({ instance: "new", leaseMs: 1_000 });
  return { ...made, store: made.store as Store & Commands, heads, opened };
}

it("every entry is there, and what was open is presumed", async () => {
  const { store, opened } = await carried();
  expect(opened).toEqual({ epoch: 2, presumed: 1 });
  const all = await entries(store);
  expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: 9 }, (_, i) => i + 1));
  expect(all[0]).toMatchObject({
    kind: "reserve",
    attempt: "a",
    request: "r-a",
    holdNano: 1_000n,
    labels: { team: ']["ü' },
    target: {
      provider: "openai",
      model: "gpt-6",
      protocol: "chat-completions",
      credential: "main",
    },
    asked: JSON.parse(asked),
    instance: "old",
  });
  expect(all[2]).toMatchObject({
    kind: "settle",
    costNano: 700n,
    upstreamCostNano: 9_007_199_254_740_993n,
    finish: "stop",
    ms: { head: 1.5, total: 20 },
    parts: [{ model: "m", usage: { output: 2 }, price: "p2", costNano: 9_007_199_254_740_993n }],
  });
  expect(all[3]?.costNano).toBe(9_007_199_254_740_993n);
  expect(all[8]).toMatchObject({
    kind: "settle",
    attempt: "d",
    outcome: "presumed",
    costNano: 250n,
    usage: { output: 3 },
    instance: "new",
  });
  expect(await store.key("digest")).toMatchObject({ id: "alice" });
  expect(await store.price!("p1")).toEqual({ lines: [] });
});

it("entries are found by what they are, old and new, and the sums are one", async () => {
  const { store } = await carried();
  expect(names(await entries(store, { key: "bob" }))).toEqual(["b reserve", "b settle"]);
  expect(names(await entries(store, { attempt: "a" }))).toEqual([
    "a reserve",
    "a settle",
    "a adjust",
  ]);
  expect(names(await entries(store, { upstreamId: "up-a" }))).toEqual(["a settle"]);
  expect(names(await entries(store, { from: NOON + 2_000, to: NOON + 2_001 }))).toEqual([
    "a adjust",
  ]);
  expect(await entries(store, { state: "open" })).toEqual([]);
  expect(await store.totals({ by: ["key"] })).toMatchObject([
    { by: { key: "alice" }, calls: 3, costNano: 700n - 200n + 300n + 250n },
    { by: { key: "bob" }, calls: 1, costNano: 9_007_199_254_740_993n },
  ]);
  expect(await left(store, {})).toBe(10_000n - 800n - 250n);
});

it("heads that were noted down are still part of it, and the chain goes on from the last", async () => {
  const { store, heads, file } = await carried();
  const { head, holds } = store.commands!;
  for (const hash of heads) expect(await holds!.run({ hash })).toBe(true);
  expect(await store.verify!()).toEqual([]);
  expect(await head!.run({})).toMatchObject({ segment: 5, seq: 9 });
  const db = new DatabaseSync(file);
  expect(
    db.prepare("SELECT kind, attempt, cost FROM entry WHERE seq IN (3, 6, 9) ORDER BY seq").all(),
  ).toEqual([
    { kind: "settle", attempt: "a", cost: 700 },
    { kind: "reserve", attempt: "c", cost: null },
    { kind: "settle", attempt: "d", cost: 250 },
  ]);
  // Any letter of an old batch.
  db.exec("DROP TRIGGER batch_stays");
  for (const first of [1, 3, 4, 7]) {
    const { rows } = db.prepare("SELECT rows FROM batch WHERE first = ?").get(first) as {
      rows: string;
    };
    const set = db.prepare("UPDATE batch SET rows = ? WHERE first = ?");
    for (let i = 1; i < rows.length; i += 37) {
      set.run(
        rows.slice(0, i) + String.fromCharCode(rows.charCodeAt(i) ^ 1) + rows.slice(i + 1),
        first,
      );
      expect(await store.verify!(), `${first} ${i}`).not.toEqual([]);
    }
    set.run(rows, first);
  }
  expect(await store.verify!()).toEqual([]);
  db.close();
});

it("what was settled stays settled: repeats change nothing, corrections count once", async () => {
  const { store } = await carried();
  await store.apply([settle("a", { costNano: 5n }), settle("b")]);
  const late = settle("c", { costNano: 100n });
  const refund = {
    do: "adjust",
    at: NOON + 2_000,
    attempt: "a",
    costNano: -200n,
    reason: "refund",
    actor: "eve",
  } as const;
  await store.apply([late, late, refund]);
  expect(names(await entries(store, { attempt: "a" })).length).toBe(3);
  expect(
    (await entries(store, { attempt: "c" })).map(({ kind, costNano }) => [kind, costNano]),
  ).toEqual([
    ["reserve", null],
    ["settle", 300n],
    ["adjust", -200n],
  ]);
  expect(await store.verify!()).toEqual([]);
});

it("entries that belong to no commit keep it from being carried over, and nothing was changed", async () => {
  const { file } = firstVersion();
  const db = new DatabaseSync(file);
  db.exec(
    "INSERT INTO entry SELECT 99, kind, 'x', nth, request, n, at, instance, key, provider, model, protocol, credential, privacy, labels, price, asked, taken, hold, usage, cost, state, outcome, upstream_id, upstream_cost, parts, finish, ms, reason, actor FROM entry WHERE seq = 1",
  );
  const made = await onFile(file);
  onTestFinished(() => made.end());
  await expect(made.store.open({ instance: "new", leaseMs: 1_000 })).rejects.toThrow(
    /1 entries belong to no commit/,
  );
  expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1 });
  expect(db.prepare("SELECT count(*) AS n FROM entry").get()).toEqual({ n: 9 });
  db.close();
});
