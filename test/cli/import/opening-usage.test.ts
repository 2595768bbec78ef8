// A key's spending in another gateway counts here from the first request on, once, for the key and
// its accounts.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readImportedKeys } from "../../../plugins/importers/key-export.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { askOnNewConnection } from "../../kit/process/daemon.ts";
import { type InProcessGateway, startInProcess } from "../../kit/in-process.ts";

const SECRETS = ["sk-left-some", "sk-left-none"] as const;
let daemon: InProcessGateway;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-opening-"));
  daemon = await startInProcess({
    yaml: `
accounts: { research: { limits: [usd=100/month] } }
providers: { demo: { use: demo, models: { echo: { price: { input: "0.50", output: "1.50" } } } } }
`,
  });
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

type Counted = { scope: string; unit: string; used: string | number };
const shown = async (id: string) =>
  (await daemon.ask("keys.show", { id })) as unknown as {
    keys: { id: string; limitUsage: Counted[] }[];
  };
const usedBy = async (id: string) => {
  const { keys } = await shown(id);
  return keys[0]!.limitUsage
    .filter(({ unit }) => unit === "nano_usd")
    .map(({ scope, used }) => [scope.replace(keys[0]!.id, "…"), String(used)]);
};

it("imported budgets have the right remaining amount, and a repeated import changes nothing", async () => {
  const file = join(folder, "keys.json");
  await writeFile(
    file,
    JSON.stringify([
      {
        token: digestKey(SECRETS[0]),
        key_alias: "some",
        max_budget: 5,
        budget_duration: "30d",
        spend: 3.25,
      },
      {
        token: digestKey(SECRETS[1]),
        key_alias: "none",
        max_budget: 5,
        budget_duration: "30d",
        spend: 6,
      },
    ]),
  );
  const { keys } = await readImportedKeys(file, "research");
  for (const round of [1, 2]) {
    const { existing } = (await daemon.ask("keys.import", { keys: [...keys] })) as {
      existing: number;
    };
    expect(existing).toBe(round === 1 ? 0 : 2);
    expect(await usedBy("some")).toEqual([
      ["key:…", "3250000000"],
      ["account:research", "9250000000"],
    ]);
    expect((await usedBy("none"))[0]).toEqual(["key:…", "6000000000"]);
  }
  const { rows } = (await daemon.ask("ledger.totals", { by: ["provider"] })) as unknown as {
    rows: { by: { provider: string }; costNano: string }[];
  };
  expect(rows).toMatchObject([{ by: { provider: "opening" }, costNano: "9250000000" }]);
  expect(await daemon.ask("ledger.verify")).toMatchObject({ problems: [] });
});

it("rejects a key whose budget is spent, and accepts a key with budget left", async () => {
  expect(await askOnNewConnection(daemon, "demo/echo", SECRETS[1])).toBe(429);
  expect(await askOnNewConnection(daemon, "demo/echo", SECRETS[0])).toBe(200);
});
