// The replacement of pruned rows, in a database that others can access too: any change is detected.
// Also archives, which can be verified on their own.
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PostgresStore } from "../../../../plugins/stores/postgres/store.ts";
import { ROLLUP_TABLE_NAMES } from "../../../../plugins/stores/postgres/schema/rollup-sql.ts";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../postgres-under-test.ts";

const DAY = 86_400_000;
const BEFORE = NOON + DAY + DAY / 2;
const LABELS = { user: "canary-4711" };

describe.skipIf(!hasPostgres())("retention in the postgres store", () => {
  let server: Postgres;
  let url: string;
  let folder: string;
  let store: PostgresStore;
  let by: ReturnType<typeof askAt>;
  let end: () => Promise<void>;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
    by = askAt(url);
    folder = await mkdtemp(join(tmpdir(), "tollgate-keeping-"));
  });
  afterAll(async () => {
    await by?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(async () => {
    const made = await makePostgres(url);
    store = made.store as PostgresStore;
    end = made.dispose;
    await store.open({ instance: "one" });
    await by.ask("SET session_replication_role = replica");
    await days();
  });
  afterEach(() => end());

  /** Three days, a call that lasts from the first to the last, and a correction of the first on the last. */
  async function days(): Promise<void> {
    const key = { id: "alice", digest: "d", created: NOON, name: "Alice" };
    await store.apply([{ do: "key", at: NOON, key }]);
    await store.apply([reserveCommand("spoken-of", { labels: LABELS })]);
    await store.apply([settleCommand("spoken-of", { costNano: 7n })]);
    for (let day = 0; day < 3; day++)
      for (let i = 0; i < 4; i++) {
        const at = NOON + day * DAY + i * 60_000;
        await store.apply([reserveCommand(`c${day}.${i}`, { at, labels: LABELS })]);
        await store.apply([
          settleCommand(`c${day}.${i}`, { at: at + 1_000, usage: { input: 10 + i } }),
        ]);
      }
    const late = { attempt: "spoken-of", costNano: -2n, reason: "refund", actor: "x" };
    await store.apply([{ do: "adjust", at: NOON + 2 * DAY + DAY / 4, ...late }]);
  }
  const problems = () =>
    store.verify!().then(
      (all) => all.map(({ message }) => message),
      (error: Error) => [error.message],
    );
  const sums = async () => [
    await store.sumEntries({ by: ["day", "key", "model"] }),
    await store.sumEntries({ by: ["day", "key"] }),
    await store.sumEntries({ by: ["model"] }),
    await store.sumEntries({ by: [], from: NOON, to: NOON + DAY / 4 }),
  ];

  it("pruned rows keep their sums by day and hour, and reserves of later rows stay", async () => {
    const before = await sums();
    await store.maintenance!.prune!(BEFORE);
    expect(await sums()).toEqual(before);
    expect(
      (await store.listEntries({ attempt: "spoken-of" })).items.map(({ kind }) => kind),
    ).toContain("adjust");
    expect(await by.ask("SELECT 1 FROM tollgate.entry WHERE attempt = 'spoken-of'")).toHaveLength(
      2,
    );
    expect(await problems()).toEqual([]);
    // It is deleted when the row that refers to it is deleted.
    await store.maintenance!.prune!(NOON + 3 * DAY);
    expect(await sums()).toEqual(before);
    for (const table of ["ledger_row", "terms", ...ROLLUP_TABLE_NAMES])
      expect(await by.ask(`SELECT 1 FROM tollgate.${table}`)).toEqual([]);
    expect(await problems()).toEqual([]);
  });

  it("the database rejects deletes of rows that are not older than all open calls", async () => {
    await store.apply([reserveCommand("open", { at: NOON + 3 * DAY })]);
    await store.verify!();
    await by.ask("SELECT tollgate.update_rollups_1(1000)");
    const [row] = await by.ask(
      `SELECT tollgate.compact_1(1, 1, '', '', '', 1, (SELECT next_seq FROM tollgate.chain), 0, '{}',
        (SELECT coalesce(string_agg(c.node || '/' || c.n || '/' || c.i, ' ' ORDER BY c.node, c.n, c.i), '')
          FROM tollgate.retained_reserves_1(1, (SELECT next_seq FROM tollgate.chain)) c), '{}', '{}', '{}', '{}') AS said`,
    );
    expect(row!["said"]).toBe("again");
  });

  it("exactly the rows before the given time are pruned", async () => {
    const last = NOON + DAY + 3 * 60_000 + 1_000;
    await store.maintenance!.prune!(last);
    // Its reserve is older, its end is not, and contains what it needs of it.
    expect((await store.listEntries({ attempt: "c1.3" })).items.map(({ kind }) => kind)).toEqual([
      "settle",
    ]);
    await store.maintenance!.prune!(last + 1);
    expect((await store.listEntries({ attempt: "c1.3" })).items).toHaveLength(0);
  });

  it.each([
    "UPDATE tollgate.checkpoint SET next_seq = next_seq + 1",
    "UPDATE tollgate.checkpoint SET rollups = rollups - 1",
    `UPDATE tollgate.checkpoint SET text = replace(text, '"rows":', '"rows":1')`,
    "UPDATE tollgate.checkpoint SET text = '{}'",
    "DELETE FROM tollgate.checkpoint",
    "UPDATE tollgate.checkpoint_rollup SET text = replace(text, '1', '2') WHERE n = 1",
    "UPDATE tollgate.checkpoint_rollup SET quarter = quarter + 1 WHERE n = 1",
    "UPDATE tollgate.checkpoint_rollup SET hash = md5(hash) WHERE n = 1",
    "DELETE FROM tollgate.checkpoint_rollup WHERE n = (SELECT max(n) FROM tollgate.checkpoint_rollup)",
    "DELETE FROM tollgate.checkpoint_rollup",
    "INSERT INTO tollgate.checkpoint_rollup SELECT n + 1, quarter, text, hash FROM tollgate.checkpoint_rollup ORDER BY n DESC LIMIT 1",
    "UPDATE tollgate.note SET text = replace(text, 'Alice', 'Mallory') WHERE kind = 'key'",
    "DELETE FROM tollgate.note WHERE kind = 'compacted'",
    "UPDATE tollgate.ledger_row SET hold = 1 WHERE attempt = 'spoken-of' AND kind = 0",
    "UPDATE tollgate.terms SET labels = NULL WHERE id IN (SELECT terms FROM tollgate.ledger_row WHERE attempt = 'spoken-of' AND kind = 0)",
    "DELETE FROM tollgate.ledger_row WHERE attempt = 'spoken-of' AND kind = 0",
    "UPDATE tollgate.ledger_row SET cost = cost + 1 WHERE attempt = 'c2.1' AND kind = 1",
    "DELETE FROM tollgate.ledger_row WHERE attempt = 'c2.3'",
    "UPDATE tollgate.chain SET head = '\\x00'",
  ])("a change is found: %s", async (change) => {
    await store.maintenance!.prune!(BEFORE);
    expect(await problems()).toEqual([]);
    await by.ask(change);
    expect(await problems()).not.toEqual([]);
  });

  it("a change of earlier notes is reported as such, also if nothing else refers to them", async () => {
    await store.maintenance!.prune!(BEFORE);
    await by.ask("UPDATE tollgate.note SET salt = md5(salt) WHERE kind = 'key'");
    expect(await problems()).toContainEqual(
      expect.stringMatching(/^The notes of node \d+ up to batch \d+ were changed/),
    );
  });

  describe("an archive", () => {
    const archived = async (before: number, labels: boolean) => {
      const file = join(folder, "ledger.gz");
      const facts = await store.maintenance!.archive!(file, { before, labels });
      return { facts, file, text: gunzipSync(await readFile(file)).toString() };
    };
    const read = async (file: string, text?: string) => {
      if (text !== undefined) await writeFile(file, gzipSync(text));
      return store.maintenance!.readArchive!(file);
    };

    it("has no labels unless requested, and is verified nevertheless", async () => {
      const whole = await archived(BEFORE, true);
      expect(whole.text).toContain(LABELS.user);
      // Data after its end is not read, and the file is closed nevertheless.
      await appendFile(whole.file, Buffer.alloc(1 << 20));
      expect((await read(whole.file)).rows).toBe(whole.facts.rows);
      const bare = await archived(BEFORE, false);
      expect(bare.text).not.toContain(LABELS.user);
      const { problems: found, ...facts } = await read(bare.file);
      expect([found, facts]).toEqual([[], bare.facts]);
      expect(bare.facts.rows).toBe(whole.facts.rows);
    });

    it("ends at the given time, and the next one continues it", async () => {
      const one = await archived(BEFORE, true);
      // Two days of four calls, and the referenced one.
      expect(one.facts.rows).toBe(18);
      await store.maintenance!.prune!(BEFORE);
      const two = await archived(NOON + 5 * DAY, true);
      expect(two.facts.rows).toBe(9);
      expect(JSON.parse(two.text.split("\n")[0]!).after).toEqual(
        JSON.parse(one.text.trimEnd().split("\n").at(-1)!).end,
      );
      expect((await read(two.file)).problems).toEqual([]);
    });

    it("is the same whatever commands run after its last row", async () => {
      const { text } = await archived(NOON + 5 * DAY, true);
      const key = { id: "bob", digest: "e", created: NOON, name: "Bob" };
      await store.apply([{ do: "key", at: NOON + 3 * DAY, key }]);
      expect((await archived(NOON + 5 * DAY, true)).text).toBe(text);
    });

    it("is invalid if any character is changed or a line is missing", async () => {
      const { file, text } = await archived(BEFORE, true);
      expect((await read(file, text)).problems).toEqual([]);
      const lines = text.trimEnd().split("\n");
      for (let i = 0; i < lines.length; i++) {
        expect((await read(file, lines.toSpliced(i, 1).join("\n"))).problems, `${i}`).not.toEqual(
          [],
        );
        const line = lines[i]!;
        for (const at of [3, line.length >> 1, line.length - 3]) {
          const bent = String.fromCharCode(line.charCodeAt(at) ^ 1);
          const changed = line.slice(0, at) + bent + line.slice(at + 1);
          const found = await read(file, lines.with(i, changed).join("\n"));
          expect(found.problems, `${changed}`).not.toEqual([]);
        }
      }
      expect((await read(file, `${text}${lines[1]}\n`)).problems).not.toEqual([]);
    });
  });
});
