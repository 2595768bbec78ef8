// Keys of another gateway from its export: no key is lost or invented, and omitted data is
// reported.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import { parseCsv, readImportedKeys, toKeysJson } from "../../../plugins/importers/key-export.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { getFault } from "../../../src/model/error.ts";
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { trialCount } from "../../kit/law-effort.ts";

async function imported(text: string, account?: string) {
  const folder = await mkdtemp(join(tmpdir(), "tollgate-import-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "keys");
  await writeFile(file, text);
  return readImportedKeys(file, account);
}
const HASH = digestKey("sk-1");

it("reads a JSON table of hashed keys with budgets and rate limits", async () => {
  const { keys, warnings } = await imported(
    JSON.stringify([
      {
        token: HASH,
        key_alias: "ci",
        models: ["gpt-5", "claude-*"],
        expires: "2027-01-31T00:00:00Z",
        max_budget: 12.5,
        budget_duration: "7d",
        rpm_limit: 60,
        tpm_limit: null,
        max_parallel_requests: 4,
        blocked: false,
        spend: 3.2,
        metadata: {},
        team_id: "t1",
      },
      {
        token: HASH.toUpperCase(),
        models: [],
        max_budget: 1,
        budget_duration: "45d",
        blocked: true,
      },
    ]),
    "acme",
  );
  expect(keys).toEqual([
    {
      digest: HASH,
      name: "ci",
      models: ["gpt-5", "claude-*"],
      account: "acme",
      expires: Date.UTC(2027, 0, 31),
      limits: ["usd=12.5/week", "requests=60/minute", "concurrent=4"],
      spent: 3_200_000_000,
    },
    {
      digest: HASH,
      account: "acme",
      limits: ["usd=1/month"],
      revoked: true,
    },
  ]);
  expect(warnings).toEqual([
    expect.stringMatching(/key 2: a budget for 45d is counted by the calendar month/),
    "Fields that were not read: team_id.",
  ]);
});

it.each([
  [`{"keys":[{"keyHash":"sha256:${HASH}","name":"a"}]}`, { digest: HASH, name: "a", limits: [] }],
  [
    `token,key_alias,models,labels\r\n${HASH},"a ""b"", c","x/*, y","{""team"":""web""}"\r\n`,
    { digest: HASH, name: 'a "b", c', models: ["x/*", "y"], labels: { team: "web" }, limits: [] },
  ],
  [`digest,models\n${HASH},{}\n\n`, { digest: HASH, limits: [] }],
])("%s", async (text, key) => {
  expect((await imported(text)).keys).toEqual([key]);
});

it.each([
  ["[1]", "must be JSON"],
  ['{"a":1}', "must be JSON"],
  ['[{"name":"a"}]', "key 1 must contain the SHA-256"],
  [`[{"token":"sk-1234"}]`, "key 1 must contain the SHA-256"],
  [`token,name\n${HASH},"a`, "a quoted cell is not closed"],
  [`[{"token":"${HASH}","expires":"soon"}]`, "Invalid expiry date"],
  [`[{"token":"${HASH}","max_budget":"much"}]`, "Invalid amount"],
])("rejects %s without repeating the text of any key", async (text, message) => {
  const error = await imported(text).then(
    () => undefined,
    (problem: unknown) => getFault(problem),
  );
  expect(error?.message).toContain(message);
  expect(error?.message).not.toContain("sk-1234");
});

const cell = fc.string({
  unit: fc.constantFrom("a", ",", '"', "\n", "\r", " ", "é"),
  maxLength: 8,
});
it("reads back any table that is written as CSV", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell), { maxLength: 8 }),
      fc.constantFrom("\n", "\r\n"),
      (rows, end) => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
        const lines = [["one", "two"], ...rows].map((row) => row.map(quoted).join(","));
        expect(parseCsv(lines.join(end))).toEqual(rows.map(([one, two]) => ({ one, two })));
      },
    ),
  );
});

it("reads a table with many lines, or with one endless line, in linear time", () => {
  for (const line of ["a,b\n", '"a""b",c\n', '"', ","]) {
    const took = (lines: number) => {
      const text = line.repeat(lines);
      const began = process.cpuUsage().user;
      try {
        parseCsv(text);
      } catch {}
      return process.cpuUsage().user - began;
    };
    took(5_000);
    expect(took(40_000)).toBeLessThan(60_000 + 40 * took(5_000));
  }
});

const nano = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const limit = fc
  .oneof(
    fc.record({
      unit: fc.constant("nano_usd" as const),
      max: nano,
      per: fc.constantFrom("hour", "day", "week", "month", "total"),
    }),
    fc.record({
      unit: fc.constantFrom("requests", "tokens"),
      max: fc.nat(),
      per: fc.constant("minute" as const),
    }),
  )
  .map(formatLimit);
const made = fc.record(
  {
    digest: fc.constant(HASH),
    name: fc.stringMatching(/^[a-z]{1,9}$/),
    models: fc.array(fc.constantFrom("gpt-5", "claude-*"), { minLength: 1, maxLength: 2 }),
    account: fc.constantFrom("acme", "research"),
    limits: fc.array(limit, { maxLength: 3 }),
    spent: nano,
    revoked: fc.constant(true),
  },
  { requiredKeys: ["digest", "limits"] },
);
it("reads the keys.json of an import as the same keys", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(made, { maxLength: 3 }), async (keys) => {
      const read = await imported(JSON.stringify({ keys: keys.map(toKeysJson) }));
      expect(read.keys).toEqual(keys);
      expect(read.warnings).toEqual([]);
    }),
    { numRuns: trialCount(40) },
  );
});

it("limits are strings in JSON and in CSV; for another form, the error shows the right one", async () => {
  const limits = ["usd=12.5/month", "concurrent=4"];
  expect((await imported(JSON.stringify([{ digest: HASH, limits }]))).keys).toMatchObject([
    { limits },
  ]);
  expect((await imported(`digest,limits\n${HASH},"${limits.join(", ")}"`)).keys).toMatchObject([
    { limits },
  ]);
  const old = { unit: "usd", max: "12.50", per: "month" };
  await expect(imported(JSON.stringify([{ digest: HASH, limits: [old] }]))).rejects.toThrow(
    "write usd=12.50/month",
  );
  await expect(imported(`digest,limits\n${HASH},usd=5`)).rejects.toThrow('Invalid limit "usd=5"');
  const vast = await imported(JSON.stringify([{ digest: HASH, max_budget: 1e12 }]));
  expect(vast).toMatchObject({
    keys: [{ limits: [] }],
    warnings: [expect.stringContaining("too large")],
  });
});

it.each([
  [0.1 + 0.2, 300_000_000],
  ["1.5e-7", 150],
  [0.000_123_456_789_6, 123_457],
])("accepts spending as a float in exports: %s", async (spend, spent) => {
  const { keys } = await imported(JSON.stringify([{ token: HASH, spend }]));
  expect(keys[0]).toMatchObject({ spent });
});
