// State directories of earlier releases, one per release. Each was created by that release with
// `node … test/kit/process/state-fixtures.ts`, and every later release opens it.
import { cpSync, lstatSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { JsonObject } from "tollgate/plugin";
import { version } from "../../../src/cli/support/load-config.ts";
import { askOnNewConnection, type Daemon, startDaemon } from "./daemon.ts";

export const STATE_FIXTURES = join(import.meta.dirname, "../../fixtures/state");

/** Used by the release and by every later one: its meaning must not change. */
export const fixtureYaml = `
frontends: [chat-completions]
middleware: [auth, limits, usage]
accounts: { research: { limits: [usd=100/total] } }
providers:
  demo: { use: demo, models: { echo: { price: { input: "0.50", output: "1.50" } } } }
`;

/** Facts about a directory that do not change with time. */
export async function describeState(daemon: Pick<Daemon, "ask">): Promise<JsonObject> {
  const ask = async (name: string, input: JsonObject = {}) =>
    (await daemon.ask(name, input)) as JsonObject & { items?: JsonObject[]; keys?: JsonObject[] };
  const { items } = await ask("ledger.entries", { limit: 500 });
  const { rows, total } = await ask("ledger.totals", { by: ["key", "model", "account", "label"] });
  const { keys = [] } = await ask("keys.list");
  const { accounts } = await ask("accounts.list");
  const audit = (await ask("audit.list", { limit: 100 })).items ?? [];
  // Without the rows that a start itself adds.
  const commands = audit.map(({ command, target, role }) => ({ command, target, role }));
  return JSON.parse(JSON.stringify({ items, rows, total, keys, accounts, commands })) as JsonObject;
}

/** Commands and requests of an operator and clients in the first hour. */
async function live(daemon: Daemon): Promise<void> {
  const limits = ["usd=1/total"];
  const made = (await daemon.ask("keys.create", {
    name: "team",
    account: "research",
    limits,
    labels: { team: "web" },
  })) as { secret: string };
  await daemon.ask("accounts.create", { id: "made", parent: "research" });
  for (let n = 0; n < 20; n++)
    await askOnNewConnection(daemon, "demo/echo", n % 2 ? made.secret : daemon.key);
  const ended = (await daemon.ask("keys.create", { name: "ended" })) as { key: { id: string } };
  await daemon.ask("keys.revoke", { id: ended.key.id });
  const { items } = (await daemon.ask("ledger.entries", { limit: 1 })) as unknown as {
    items: { attempt: string }[];
  };
  await daemon.ask("ledger.adjust", {
    attempt: items[0]!.attempt,
    usd: "-0.000001",
    reason: "refund",
  });
  await daemon.ask("erase", { label: "team=gone" }).catch(() => {});
  writeFileSync(join(daemon.stateDir, "key"), `${made.secret}\n`);
}

if (import.meta.main) {
  const daemon = await startDaemon({ yaml: fixtureYaml });
  try {
    await live(daemon);
    const expected = await describeState(daemon);
    await daemon.stop();
    const to = join(STATE_FIXTURES, version);
    rmSync(to, { recursive: true, force: true });
    mkdirSync(to, { recursive: true });
    cpSync(daemon.stateDir, join(to, "state"), {
      recursive: true,
      filter: (path) => !lstatSync(path).isSocket() && !/\.lock$|ballast/.test(basename(path)),
    });
    writeFileSync(join(to, "told.json"), `${JSON.stringify(expected, undefined, 1)}\n`);
  } finally {
    await daemon[Symbol.asyncDispose]();
  }
}
