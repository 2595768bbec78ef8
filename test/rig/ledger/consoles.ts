// The console over a large ledger: each page in a real browser, and the duration of its slowest
// request. Then five consoles with the pages' requests next to a gateway that serves, and whether
// they delay a call.
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page, Request } from "playwright-core";
import { openBrowser } from "../../console/browser.ts";
import { VIEWS } from "../../console/views.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { onFile } from "../../plugins/stores/stores-under-test.ts";
import { fill, Traffic } from "./ledger-size.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";

/** Maximum duration of a page's request, in milliseconds. */
const ALLOWED_MS = 200;
/** Maximum delay of a call by the machine, in milliseconds. */
const ALLOWED_CALL_MS = 50;
const CONSOLES = 5;
/** Interval at which pages refresh. */
const EVERY_MS = 5_000;
const ROUNDS = 4;
const TOKEN = "consoles-token-0123456789abcdef";
const YAML = `
admin: { port: 0, tokens: { rig: { role: owner, token: ${TOKEN} } } }
frontends: [chat-completions, messages]
observers: [console]
providers:
  demo: { use: demo, with: { pace_ms: 1 } }
  acme: { use: demo }
models:
  fast: [acme/echo, demo/echo]
`;

interface Asked {
  readonly command: string;
  readonly body: string;
}

export async function consoles(of: {
  readonly rows: number;
  readonly seed: number;
  readonly calls: number;
  /** A folder that is kept with its ledger, which is filled once. Empty: none. */
  readonly dir: string;
  /** Factor for the time limits. */
  readonly patience: number;
  readonly say: (line: string) => void;
}): Promise<RigResult> {
  const { say } = of;
  const wrong: string[] = [];
  if (of.dir) await mkdir(of.dir, { recursive: true });
  const first = await startDaemon({ yaml: YAML, ...(of.dir && { dir: of.dir }) });
  let gateway: Daemon = first;
  try {
    await first.stop();
    const filled = join(first.dir, `filled-${of.rows}`);
    if (!existsSync(filled)) {
      const chanced = createChance(of.seed);
      const file = join(first.stateDir, "store/ledger.db");
      const ledger = await onFile(file, { durability: "relaxed" });
      await ledger.store.open({ instance: "filling" });
      await fill(ledger.store, new Traffic(chanced, "r"), of, chanced, say);
      await ledger.dispose();
      await writeFile(filled, "");
    }
    gateway = await startDaemon({ yaml: YAML, dir: first.dir });
    const { secret } = (await gateway.ask("keys.create", {})) as { secret: string };
    const { asked, slowest } = await pages(gateway, of, wrong);
    const alone = await calls(gateway, secret, of.calls);
    say(`calls alone: p50 ${alone.p50} ms, p99 ${alone.p99} ms`);
    const over = new AbortController();
    const polling = Array.from({ length: CONSOLES }, () => poll(gateway, asked, over.signal));
    const beside = await calls(gateway, secret, of.calls);
    over.abort();
    const polled = (await Promise.all(polling)).reduce((all, each) => all + each, 0);
    say(`calls beside ${CONSOLES} consoles: p50 ${beside.p50} ms, p99 ${beside.p99} ms`);
    if (beside.p99 > (2 * alone.p99 + ALLOWED_CALL_MS) * of.patience)
      wrong.push(`calls took ${alone.p99} ms at p99, and ${beside.p99} ms beside consoles`);
    const counts = {
      rows: of.rows,
      commands: asked.length,
      polled,
      slowest_ms: slowest,
      p99_alone_ms: alone.p99,
      p99_beside_ms: beside.p99,
    };
    return { wrong, counts, seed: of.seed };
  } finally {
    await gateway.stop("SIGKILL");
    if (!of.dir) await rm(first.dir, { recursive: true, force: true });
  }
}

/**
 * Each view is opened several times, and the shortest duration of each request counts, because
 * other load on the machine is irrelevant.
 */
async function pages(
  gateway: Daemon,
  { say, patience }: { readonly say: (line: string) => void; readonly patience: number },
  wrong: string[],
) {
  const browser = await openBrowser();
  const context = await browser.newContext();
  const { url } = (await gateway.ask("console")) as { url: string };
  const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole("navigation", { name: "Pages" }).waitFor({ state: "attached" });
  const asked = new Map<string, Asked>();
  const best = new Map<string, number>();
  let slowest = 0;
  // A first report sums days that no report has requested yet.
  for (const round of Array.from({ length: ROUNDS }).keys()) {
    for (const { name, address } of VIEWS) {
      const took = await timed(page, `${admin}/console${address}`);
      for (const [key, one] of took) if (!asked.has(key)) asked.set(key, one);
      if (round === 0) continue;
      for (const [key, { ms }] of took) best.set(key, Math.min(best.get(key) ?? Infinity, ms));
      if (round < ROUNDS - 1) continue;
      const longest = Math.max(0, ...[...took.keys()].map((key) => best.get(key) ?? 0));
      say(`${name}: ${Math.round(longest)} ms, ${nameOfLongest(took, best)}`);
      if (longest > ALLOWED_MS * patience)
        wrong.push(`${name} has a request of ${Math.round(longest)} ms`);
      slowest = Math.max(slowest, Math.round(longest));
    }
  }
  await browser.close();
  return { asked: [...asked.values()], slowest };
}

/** The slowest of several commands. */
const nameOfLongest = (took: ReadonlyMap<string, unknown>, best: ReadonlyMap<string, number>) =>
  [...took.keys()].toSorted((a, b) => (best.get(b) ?? 0) - (best.get(a) ?? 0))[0] ?? "none";

async function timed(page: Page, address: string) {
  const took = new Map<string, Asked & { readonly ms: number }>();
  const under = new Set<Request>();
  const begun = (one: Request) => {
    // A request that waits for news is not measured.
    if (one.url().includes("/admin/v1/") && !one.postData()?.includes("waitMs")) under.add(one);
  };
  const hear = (one: Request) => {
    under.delete(one);
    const [, command] = /\/admin\/v1\/([^?]+)/.exec(one.url()) ?? [];
    const body = one.postData() ?? "{}";
    if (command === undefined || one.method() !== "POST") return;
    const ms = one.timing().responseEnd;
    // Time ranges move on, but the request is the same.
    took.set(`${command} ${body.replaceAll(/\d{9,}/g, "t")}`, { command, body, ms });
  };
  const cut = (one: Request) => under.delete(one);
  page.on("request", begun);
  page.on("requestfinished", hear);
  page.on("requestfailed", cut);
  await page.goto(address);
  await page.waitForLoadState("networkidle", { timeout: 1_500 }).catch(() => {});
  page.off("request", begun);
  // The rig looks for a slow one.
  await until(() => under.size === 0).catch(() => {});
  page.off("requestfinished", hear);
  page.off("requestfailed", cut);
  return took;
}

/** A console: all requests of its pages, repeatedly. */
async function poll(gateway: Daemon, asked: readonly Asked[], over: AbortSignal): Promise<number> {
  const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
  let sent = 0;
  while (!over.aborted) {
    for (const { command, body } of asked) {
      if (over.aborted) break;
      const answer = await fetch(`${admin}/admin/v1/${command}`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body,
      });
      await answer.arrayBuffer();
      sent++;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS / asked.length));
    }
  }
  return sent;
}

/** Each call has two commits before its response is complete. */
async function calls({ url }: Daemon, key: string, most: number) {
  const took: number[] = [];
  for (let i = 0; i < most; i++) {
    const began = performance.now();
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/echo", messages: [{ role: "user", content: "Hi" }] }),
    });
    await answer.arrayBuffer();
    took.push(performance.now() - began);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round(took[Math.floor(took.length * share)]! * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}

export const rig: Rig = {
  options: { rows: 200_000, calls: 600, dir: "", patience: 1, seed: Date.now() % 1e6 },
  run: ({ rows, calls, dir = "", patience, seed }, say) =>
    consoles({
      rows: Number(rows),
      calls: Number(calls),
      dir,
      patience: Number(patience),
      seed: Number(seed),
      say,
    }),
};
