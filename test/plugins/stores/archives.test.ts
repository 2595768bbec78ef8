// Archives have one format: each store reads those of the others without loss. The third store is
// based on the kit.
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Store } from "../../../src/plugin/store/store.ts";
import { createPostgresStore } from "../../../plugins/stores/postgres/store.ts";
import {
  decodeCommit,
  encodeCommit,
  fromMovedRow,
  readArchive,
  toEntry,
} from "../../../src/store/index.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { makeMemory, onFile } from "./stores-under-test.ts";
import { sharedLedger } from "./memory-fleet-store.ts";
import { settings } from "./postgres-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

const DAY = 86_400_000;
const word = fc.oneof(
  fc.constantFrom("", "12", "__proto__", "~bigint", "a/b", "\u2028", "x\ny"),
  fc.string({ maxLength: 6 }),
);
const call = fc.record({
  labels: fc.dictionary(word, word, { maxKeys: 3 }).map((of) => ({ ...of })),
  key: word.filter((text) => text !== ""),
  end: fc.constantFrom("open", "ok", "rich", "adjusted"),
  usage: fc.record(
    { input: fc.nat(99), output: fc.constantFrom(0, 2.5, 7), seconds: fc.constant(0.25) },
    { requiredKeys: [] },
  ),
});
type Call = typeof call extends fc.Arbitrary<infer C> ? C : never;

async function writeCalls(store: Store, calls: readonly Call[]): Promise<void> {
  for (const [i, { labels, key, end, usage }] of calls.entries()) {
    const [attempt, at] = [`r${i}.1`, NOON + i];
    const claims = [
      { scope: "key:a", unit: "nano_usd", max: 10n ** 12n, per: "total", take: 5n } as const,
    ];
    await store.apply([
      reserveCommand(attempt, {
        at,
        labels,
        key,
        claims: i % 2 ? claims : [],
        request: `r${i}`,
        ...(i % 3 === 0 && {
          clientRequest: {
            model: "m",
            frontend: "chat",
            protocol: i % 2 ? "chat-completions" : "messages",
            mode: "translated",
            stream: false,
          },
        }),
      }),
    ]);
    if (end === "open") continue;
    await store.apply([
      settleCommand(attempt, {
        at: at + 1,
        usage,
        ...(end === "rich" && {
          upstreamId: "u",
          upstreamCostNano: 10n ** 15n,
          finish: "stop",
          ms: { headers: 1, total: 3 },
          parts: [{ model: "m", usage, price: null, costNano: 3n }],
        }),
      }),
    ]);
    if (end === "adjusted")
      await store.apply([
        { do: "adjust", at: at + 2, attempt, costNano: -1n, reason: "late bill", actor: "ann" },
      ]);
  }
}

const listed = async (store: Store) => (await store.listEntries({}, { limit: 1_000 })).items;

async function archiveOf(store: Store, file: string, labels = true) {
  const made = await store.maintenance!.archive!(file, { before: Infinity, labels });
  const rows: ReturnType<typeof toEntry>[] = [];
  const { problems, ...read } = await readArchive(file, (some, first) =>
    some.forEach((row, i) => rows.push(toEntry(row, first + i))),
  );
  return { made, problems, read, rows };
}

describe.skipIf(!hasPostgres())("an archive of any store", () => {
  let server: Postgres;
  const folder = mkdtempSync(join(tmpdir(), "tollgate-archives-"));
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await server?.[Symbol.asyncDispose]();
  });
  const inPostgres = async (): Promise<Store> => {
    const store = createPostgresStore(settings(await server.database()));
    onTestFinished(() => store.close());
    return store;
  };
  let files = 0;
  const inFile = async (): Promise<Store> => {
    const made = await onFile(join(folder, `${++files}.db`));
    onTestFinished(() => made.dispose());
    return made.store;
  };

  it("has the rows that the store lists, whatever they contain, and both verify it", async () => {
    const postgres = await inPostgres();
    await postgres.open({ instance: "one" });
    let attempts = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 12 }), async (calls) => {
        const sqlite = await inFile();
        await sqlite.open({ instance: "one" });
        const kept = sharedLedger().store();
        await kept.open({ instance: "one" });
        for (const store of [sqlite, postgres, kept]) {
          const file = join(folder, `${++attempts}.gz`);
          if (store === postgres) {
            // One database for all runs: rows of earlier runs are pruned.
            const open = (await listed(store)).filter(({ state }) => state === "open");
            for (const { attempt } of open)
              await store.apply([settleCommand(attempt, { at: NOON })]).catch(() => undefined);
            await store.maintenance!.prune!(NOON + DAY);
          }
          const tag = `${attempts}-`;
          const own: Store = {
            ...store,
            apply: (batch) =>
              store.apply(
                batch.map((c) => ("attempt" in c ? { ...c, attempt: tag + c.attempt } : c)),
              ),
          };
          await writeCalls(own, calls);
          const { made, problems, read, rows } = await archiveOf(store, file);
          expect(problems).toEqual([]);
          expect(read).toEqual(made);
          expect(rows).toEqual(await listed(store));
          for (const reader of [sqlite, postgres, kept])
            expect(await reader.maintenance!.readArchive!(file)).toEqual({ ...made, problems: [] });
        }
      }),
      { numRuns: trialCount(12, 3) },
    );
  });

  it("both detect a change, with and without labels, and read erased texts as erased", async () => {
    const [sqlite, postgres] = [await inFile(), await inPostgres()];
    for (const store of [sqlite, postgres]) {
      await store.open({ instance: "one" });
      await store.apply([
        reserveCommand("a", { labels: { user: "user-of-row", team: "core" } }),
        settleCommand("a"),
      ]);
      const file = join(folder, "changed.gz");
      const bare = await archiveOf(store, file, false);
      expect(bare.problems).toEqual([]);
      expect(bare.rows).toHaveLength(2);
      expect(gunzipSync(readFileSync(file)).toString()).not.toContain("user-of-row");
      await store.maintenance!.erase!({ label: { name: "user", value: "user-of-row" } });
      const { rows, problems } = await archiveOf(store, file);
      expect(problems).toEqual([]);
      expect(rows.map(({ labels }) => labels)).toEqual(
        [1, 2].map(() => ({ user: "erased", team: "core" })),
      );
      const text = gunzipSync(readFileSync(file)).toString();
      writeFileSync(file, gzipSync(text.replace('"700"', '"701"')));
      for (const reader of [sqlite, postgres])
        expect((await reader.maintenance!.readArchive!(file)).problems).not.toEqual([]);
    }
  });

  it("continues after a prune with the hash at the end of the previous one", async () => {
    for (const store of [await inFile(), await inPostgres(), sharedLedger().store()]) {
      await store.open({ instance: "one" });
      await store.apply([reserveCommand("a"), settleCommand("a")]);
      const first = await archiveOf(store, join(folder, "first.gz"));
      await store.maintenance!.prune!(NOON + DAY);
      await store.apply([reserveCommand("b"), settleCommand("b")]);
      const second = await archiveOf(store, join(folder, "second.gz"));
      expect(second.problems).toEqual([]);
      expect(second.rows.length).toBe(2);
      expect(second.made.previousHash).toBe(first.made.lastHash);
    }
  });
});

it("an archive of version 1 is read, and one of a later version is a problem", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-archive-version-"));
  const { store, dispose } = await onFile(join(folder, "one.db"));
  onTestFinished(async () => {
    await dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  const file = join(folder, "one.gz");
  await store.open({ instance: "one" });
  // One call per commit: no amount refers to another, as in version 1.
  for (const attempt of ["a", "b"]) {
    const claim = { scope: "key:k", unit: "requests", max: 9n, per: "day", take: 1n } as const;
    await store.apply([reserveCommand(attempt, { claims: [claim] })]);
    await store.apply([settleCommand(attempt)]);
  }
  await archiveOf(store, file);
  const [header, ...lines] = gunzipSync(readFileSync(file)).toString().trimEnd().split("\n");
  const footer = JSON.parse(lines.pop()!) as object;
  const problemsOf = async (version: number) => {
    const before = [JSON.stringify({ ...JSON.parse(header!), version }), ...lines];
    const text = before.map((line) => `${line}\n`).join("");
    const end = { ...footer, sha256: createHash("sha256").update(text).digest("hex") };
    writeFileSync(file, gzipSync(`${text}${JSON.stringify(end)}\n`));
    return (await readArchive(file)).problems;
  };
  expect(await problemsOf(1)).toEqual([]);
  expect(await problemsOf(2)).toEqual([]);
  expect(await problemsOf(3)).toContainEqual({
    path: "/line/1",
    message: "The archive is not of a version that can be read (1 to 2).",
  });
});

it("the rows of a commit are the same after encoding", async () => {
  const { store, dispose } = await makeMemory();
  onTestFinished(dispose);
  await store.open({ instance: "one" });
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 8 }), async (calls) => {
      const tag = `${++n}-`;
      await writeCalls(
        {
          ...store,
          apply: (batch) =>
            store.apply(
              batch.map((c) => ("attempt" in c ? { ...c, attempt: tag + c.attempt } : c)),
            ),
        },
        calls,
      );
      const rows = (await store.listEntries({ key: calls[0]!.key }, { limit: 1_000 })).items
        .filter(({ attempt }) => attempt.startsWith(tag))
        .map(({ seq: _, ...row }) => fromMovedRow({ ...row, meterAmounts: [] }));
      const again = decodeCommit(encodeCommit("one", rows));
      expect(again).toEqual(rows);
    }),
    { numRuns: trialCount(20, 5) },
  );
});
