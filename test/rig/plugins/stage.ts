// A gateway with every broken plugin next to healthy providers.
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import type { LedgerEntry, JsonObject } from "tollgate/plugin";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { billing, FRONTENDS, type BillingUpstream } from "../money/billing-upstream.ts";
import { judged } from "../ledger/crash-checks.ts";
import { TARGETS, type ClientResult } from "../load/traffic.ts";
import { DEADLY, HELD, HOOKS } from "./failure-modes.ts";

/** The store: the built-in one, or one that writes some settles twice. */
const STORES = {
  "": "{ use: sqlite, with: { durability: process, ballast_mb: 0 } }",
  twice: "{ use: ./naive-store.ts, with: { bug: no-unique-index } }",
} as const;
export type Plant = keyof typeof STORES;

/** A small heap. */
const HEAP_MB = 256;
/** A blocked process is ended after ten seconds. A busy machine takes longer. */
const FORGOTTEN_MS = 120_000;

const yaml = (url: string, workers: number, plant: Plant) => `
workers: ${workers}
frontends: ${FRONTENDS}
retries: { per_target: 1 }
store: ${STORES[plant]}
middleware:
  - auth
  - limits
  - { use: usage, with: { label_headers: [x-rig] } }
${HOOKS.map((how) => `  - { use: ./hook-${how}.ts, with: { how: ${how} }, timeout: 500ms, for: { models: ["hook-${how}"] } }`).join("\n")}
providers:${billing(url)}
${[...Object.keys(HELD), ...Object.keys(DEADLY)].map((how) => `  ${how}: { use: ./broken-provider.ts, timeouts: { total: 1s }, with: { how: ${how} } }`).join("\n")}
models:
${HOOKS.map((how) => `  hook-${how}: [chat/model]`).join("\n")}
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
`;

const plant = (name: string) => readFile(new URL(`../mutants/${name}`, import.meta.url), "utf8");

export async function broken(of: {
  readonly up: BillingUpstream;
  readonly workers: number;
  readonly plant: Plant;
  /** The folder of an earlier one. */
  readonly dir?: string;
  /** Arguments of each process. */
  readonly node?: string;
}): Promise<Daemon> {
  const hook = await plant("broken-hook.ts");
  return startDaemon({
    yaml: yaml(of.up.up.url, of.workers, of.plant),
    files: {
      "broken-provider.ts": await plant("broken-provider.ts"),
      "naive-store.ts": await plant("naive-store.ts"),
      // Each with its own name, under which it must be reported.
      ...Object.fromEntries(
        HOOKS.map((how) => [`hook-${how}.ts`, hook.replace('"broken-hook"', `"hook-${how}"`)]),
      ),
    },
    env: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB} ${of.node ?? ""}`.trim() },
    ...(of.dir !== undefined && { dir: of.dir }),
  });
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly by: string;
}

/** On its own connection. Status 0: no response, or a truncated one. */
export const askBroken = (
  { url, key: first }: Pick<Daemon, "url" | "key">,
  model: string,
  stream: boolean,
  key = first,
  words = "Hi",
): Promise<Answer> =>
  new Promise((resolve) => {
    let text = "";
    let by = "";
    const none = () => resolve({ status: 0, text, by });
    const req = request(
      `${url}/v1/chat/completions`,
      {
        agent: false,
        signal: AbortSignal.timeout(FORGOTTEN_MS),
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      },
      (res) => {
        // An ID starts with its vendor's own prefix.
        by = String(res.headers["x-request-id"]).slice(0, -8);
        res.setEncoding("utf8").on("data", (part: string) => (text += part));
        res.on("close", () => resolve({ status: res.complete ? res.statusCode! : 0, text, by }));
        res.on("error", () => {});
      },
    );
    req.on("error", none);
    req.end(JSON.stringify({ model, stream, messages: [{ role: "user", content: words }] }));
  });

interface Processes {
  readonly pid: number;
  readonly workers?: readonly { readonly pid: number }[];
  readonly quarantinedHooks: readonly { readonly plugin: string; readonly hook: string }[];
}
export const statusOf = async (at: Daemon): Promise<Processes> =>
  (await at.ask("status", {} as JsonObject)) as unknown as Processes;
export const pidsOf = ({ pid, workers = [] }: Processes): string =>
  [pid, ...workers.map((one) => one.pid)].join(" ");

/** Violations in the ledger, when all calls have ended. */
export async function ledgerOf(
  at: Daemon,
  up: BillingUpstream,
  heard: readonly ClientResult[],
): Promise<string[]> {
  const rows = await entries(at);
  const ill: ReadonlySet<string> = new Set([...Object.keys(HELD), ...Object.keys(DEADLY)]);
  const of = (which: boolean) => rows.filter(({ target }) => !ill.has(target.provider) === which);
  const open = (kind: LedgerEntry["kind"]) =>
    of(false)
      .filter((row) => row.kind === kind)
      .map(({ attempt }) => attempt)
      .sort()
      .join(" ");
  const { problems } = (await at.ask("ledger.verify", {})) as { problems: { message: string }[] };
  return [
    ...judged(
      of(true).filter(({ labels }) => labels["x-rig"] !== undefined),
      up.bill.filter(({ tag }) => tag !== "?"),
      heard,
    ),
    ...(open("reserve") === open("settle")
      ? []
      : ["calls of broken plugins are open, or settled twice"]),
    ...problems.map(({ message }) => `verify: ${message}`),
  ];
}

/** All rows, as soon as no call is open, or the time is over. */
async function entries(at: Daemon): Promise<LedgerEntry[]> {
  for (
    const end = performance.now() + FORGOTTEN_MS / 4;
    ;
    await new Promise((r) => setTimeout(r, 100))
  ) {
    const all: LedgerEntry[] = [];
    let after: string | undefined;
    do {
      const page = (await at.ask("ledger.entries", {
        ...(after !== undefined && { after }),
        limit: 1_000,
      })) as unknown as { items: LedgerEntry[]; next?: string };
      for (const row of page.items)
        all.push({ ...row, costNano: row.costNano === null ? null : BigInt(row.costNano) });
      after = page.next;
    } while (after !== undefined);
    const count = (kind: LedgerEntry["kind"]) => all.filter((row) => row.kind === kind).length;
    if (count("reserve") <= count("settle") || performance.now() > end) return all;
  }
}
