// A disk with a slow fsync: the gateway's own system calls are delayed. Requests take longer and
// are answered correctly, the event loop is not blocked, and every row exists. Needs a C compiler
// and Linux, and is skipped without them.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { LedgerEntry } from "tollgate/plugin";
import { say, scriptedModel, startUpstream } from "tollgate/testing";
import { createSlowFsync } from "../../kit/database/c-programs.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

/**
 * Long enough that a delay on a busy machine, up to a hundred times the usual, does not look like a
 * commit.
 */
const SLOW_MS = 1_000;
const AT_ONCE = 40;

it("slow fsync: calls wait, none is rejected, nothing stalls", async (test) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-fsync-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const slow = join(folder, "ms");
  writeFileSync(slow, "0");
  using disk = createSlowFsync(slow);
  if (!disk) return test.skip("needs Linux and a C compiler");
  await using up = await startUpstream(scriptedModel(say("Hello").usage({ input: 10, output: 2 })));
  await using at = await startDaemon({
    yaml: `
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: { use: sqlite, with: { durability: power, ballast_mb: 0 } }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
`,
    env: disk.env,
  });
  const ask = (n: number) =>
    fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
      body: JSON.stringify({
        model: "up/model",
        stream: n % 2 === 0,
        messages: [{ role: "user", content: `${n}` }],
      }),
    });
  for (let n = 0; n < 10; n++) await (await ask(n)).text();
  writeFileSync(slow, String(SLOW_MS));

  let [over, healthy] = [0, 0];
  const answers = Promise.all(
    Array.from({ length: AT_ONCE }, async (_, n) => {
      const res = await ask(n);
      const text = await res.text();
      over++;
      return { status: res.status, text };
    }),
  );
  // Two commits precede the first response. A blocked event loop would answer only one or two of
  // these.
  while (over === 0) {
    expect(await (await fetch(`${at.url}/healthz`)).text()).not.toBe("");
    if (over === 0) healthy++;
  }
  expect(healthy).toBeGreaterThan(5);
  for (const { status, text } of await answers) {
    expect(status).toBe(200);
    expect(text).toMatch(/Hello/);
  }
  writeFileSync(slow, "0");
  let settles: LedgerEntry[] = [];
  // A response does not wait for its row forever.
  await until(async () => {
    const { items } = (await at.ask("ledger.entries", { limit: 1_000 })) as unknown as {
      items: LedgerEntry[];
    };
    settles = items.filter(({ kind }) => kind === "settle");
    return settles.length === up.bills.length;
  });
  expect(settles.every(({ state, outcome }) => state === "exact" && outcome === "ok")).toBe(true);
  expect(await at.ask("ledger.verify")).toMatchObject({ problems: [] });
});
