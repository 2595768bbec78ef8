// A large ledger: a month of calls in real commits, then reports during further commits. The
// reports equal the rows, to the nano-dollar, within an acceptable time, and delay no commit.
import { spawn } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store, StoreCommand } from "tollgate/plugin";
import {
  type Dimension,
  createLedgerCommands,
  type UsageSums,
} from "../../../src/admin/commands/ledger-commands.ts";
import { onFile } from "../../plugins/stores/stores-under-test.ts";
import { type ChangedSource, mutantOf, preloaded } from "../mutants/changed-source.ts";
import { type Chance, createChance, type Rig, type RigResult, waitsMore } from "../rig.ts";

const DAY = 86_400_000;
const HOUR = DAY / 24;
const MONTH = 30 * DAY;
/** Maximum duration of a monthly report, in milliseconds. */
const ALLOWED_MS = 200;
const KEYS = 40;
const MODELS = 12;
const TEAMS = ["core", "web", "data", "sales"] as const;
/** Concurrent commits while a ledger is filled. */
const AHEAD = 16;
/** Interval of timed commits, in milliseconds. */
const APART_MS = 5;

/** Planted defect of the ledger, which must be found. */
const MUTANTS = {
  // A part is missing in a sum.
  forgetful: {
    in: "plugins/stores/sqlite/sums/rollup-updater.ts",
    line: "for (const one of page) pending.add(one);",
    instead: "for (const one of page.slice(1)) pending.add(one);",
  },
  // A part of the sums is read again.
  twice: {
    in: "plugins/stores/sqlite/sums/rollup-reader.ts",
    line: "return { after, quarters,",
    instead: "return { after: after - 500, quarters,",
  },
  // A day is always in UTC, whatever time zone is requested.
  zoneless: {
    in: "plugins/stores/sqlite/sums/rollup-reader.ts",
    line: "(unit === undefined || clock.isWithin(unit, start, start + span))",
    instead: "true",
  },
  // Every report reads every row.
  unsummed: {
    in: "plugins/stores/sqlite/sums/rollups.ts",
    line: "if (!canUseRollups(query)) return undefined;",
    instead: "return undefined;",
  },
  // A report blocks the process, and commits wait for it.
  holding: {
    in: "admin/commands/ledger-commands.ts",
    line: "const all = await store.sumEntries(query);",
    instead:
      "for (const from = Date.now(); Date.now() - from < 150;); const all = await store.sumEntries(query);",
  },
} as const satisfies Record<string, ChangedSource>;
type Mutant = keyof typeof MUTANTS;

const ZONE = "Europe/Berlin";

interface Of {
  readonly rows: number;
  readonly seed: number;
}
type Say = (line: string) => void;

/** Calls as a gateway writes them: in one batch, some start and some end. */
export class Traffic {
  readonly #chance: Chance;
  readonly #open: string[] = [];
  readonly #prefix: string;
  readonly spent = new Map<string, bigint>();
  readonly spentIn = new Map<string, bigint>();
  readonly #days = new Map<number, string>();
  all = 0n;
  calls = 0;
  /** Age of the first one, and its time. */
  readonly span: number;
  readonly from: number;
  #n = 0;

  constructor(of: Chance, prefix: string, span = MONTH) {
    this.#chance = of;
    this.#prefix = prefix;
    this.span = span;
    this.from = Date.now() - span + 60_000;
  }

  batch(size: number, at: number): StoreCommand[] {
    const commands: StoreCommand[] = [];
    // No call ends in the commit in which it starts.
    let before = this.#open.length;
    for (let i = 0; i < size; i++)
      commands.push(
        before > 0 && this.#chance.often(0.5) ? this.#settle(at, before--) : this.#reserve(at),
      );
    return commands;
  }

  #reserve(at: number): StoreCommand {
    const attempt = `${this.#prefix}${String(++this.#n).padStart(10, "0")}.1`;
    const model = this.#chance.below(MODELS);
    const key = this.#chance.below(KEYS);
    this.#open.push(`${attempt} ${model}`);
    return {
      do: "reserve",
      at,
      attempt,
      request: attempt.slice(0, -2),
      number: 1,
      key: `key${key}`,
      account: key % 3 === 0 ? "acme/research" : "acme",
      target: {
        provider: model % 2 === 0 ? "openai" : "anthropic",
        model: `model-${model}`,
        protocol: "messages",
        credential: `c${model % 3}`,
      },
      privacy: "off",
      labels: { team: TEAMS[key % TEAMS.length]! },
      claims: [],
      holdNano: 5_000_000n,
      price: `price-of-${model}`,
      clientRequest: {
        model: "fast",
        frontend: "messages",
        protocol: "messages",
        mode: "passthrough",
        stream: true,
      },
    };
  }

  /** Where it is another one than in Greenwich for some hours. An hour lies in one day. */
  #dayOf(at: number): string {
    const hour = Math.floor(at / HOUR);
    let day = this.#days.get(hour);
    if (day === undefined) this.#days.set(hour, (day = berlin.format(at)));
    return day;
  }

  #settle(at: number, before: number): StoreCommand {
    const [attempt, model] = this.#open.splice(this.#chance.below(before), 1)[0]!.split(" ");
    const [input, output] = [1 + this.#chance.below(5_000), 1 + this.#chance.below(900)];
    const costNano = BigInt(input * 1_500 + output * 7_500);
    const name = `${new Date(at).toISOString().slice(0, 10)} model-${model}`;
    this.spent.set(name, (this.spent.get(name) ?? 0n) + costNano);
    const day = this.#dayOf(at);
    this.spentIn.set(day, (this.spentIn.get(day) ?? 0n) + costNano);
    this.all += costNano;
    this.calls++;
    return {
      do: "settle",
      at,
      attempt: attempt!,
      state: this.#chance.often(0.02) ? "estimated" : "exact",
      usage: { input, output, cache_read: this.#chance.below(400) },
      costNano,
      outcome: this.#chance.often(0.97) ? "ok" : "timeout",
      upstreamId: `up-${attempt}`,
      finish: "stop",
      ms: { headers: 120.25, firstToken: 300.5, total: 1_200.75 },
    };
  }
}

const berlin = new Intl.DateTimeFormat("sv", { timeZone: ZONE });

export async function fill(
  store: Store,
  traffic: Traffic,
  { rows, most = 49 }: { readonly rows: number; readonly most?: number },
  chanced: Chance,
  say: Say,
) {
  const began = performance.now();
  const { from, span } = traffic;
  let written = 0;
  const underWay: Promise<unknown>[] = [];
  for (let told = 0; written < rows;) {
    const size = Math.min(rows - written, 2 + chanced.below(most - 1));
    const at = from + Math.floor((written / rows) * (span - 120_000));
    underWay.push(store.apply(traffic.batch(size, at)));
    // Each is a separate commit. While some are written, the next ones are prepared.
    if (underWay.length >= AHEAD) await underWay.shift();
    written += size;
    if (written - told < 1_000_000) continue;
    told = written;
    say(`${written} rows in ${seconds(began)} s`);
  }
  await Promise.all(underWay);
  say(`${written} rows written in ${seconds(began)} s`);
}

const seconds = (since: number): string => ((performance.now() - since) / 1_000).toFixed(1);

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/**
 * Commits at a steady rate, and the duration of each from its due time, so that a late start
 * counts.
 */
async function commits(
  store: Store,
  traffic: Traffic,
  timed: number,
  until: () => boolean,
): Promise<Latency> {
  const took: number[] = [];
  for (let [i, due] = [0, performance.now()]; i < timed || !until(); i++) {
    await store.apply(traffic.batch(2, Date.now()));
    took.push(performance.now() - due);
    due = performance.now() + APART_MS;
    await new Promise((resolve) => setTimeout(resolve, APART_MS));
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => Math.round(took[Math.floor(took.length * share)]! * 100) / 100;
  return { p50: at(0.5), p99: at(0.99) };
}

const REPORTS: readonly { readonly by: readonly Dimension[]; readonly more?: object }[] = [
  { by: ["day", "model"] },
  { by: ["day"], more: { tz: ZONE } },
  { by: ["key"] },
  { by: ["label", "outcome"] },
  { by: ["hour"], more: { model: "model-3" } },
  { by: ["account", "provider"], more: { key: "key7" } },
];

export type Ask = (
  by: readonly Dimension[],
  more?: object,
) => Promise<{ sums: UsageSums; ms: number }>;

/** The last thirty days by default. */
export function asking(store: Store): Ask {
  const commands = createLedgerCommands(store, async () => {});
  return async (by, more = {}) => {
    const began = performance.now();
    const from = Date.now() - MONTH;
    const sums = (await commands["ledger.totals"]({ by: [...by], from, ...more })) as UsageSums;
    return { sums, ms: performance.now() - began };
  };
}

/**
 * Reports equal the written rows. The sums of each report equal the total if a call is in one row.
 */
async function judge(ask: Ask, traffic: Traffic, wrong: string[]): Promise<void> {
  // From its start: writing takes some time, so the last thirty days have moved on.
  const since = { from: traffic.from };
  const { sums } = await ask(["day", "model"], since);
  if (sums.total.costNano !== traffic.all || sums.total.calls !== traffic.calls)
    wrong.push(
      `total ${sums.total.costNano} of ${sums.total.calls}, written ${traffic.all} of ${traffic.calls}`,
    );
  const said = new Map(
    sums.rows.map(({ by, costNano }) => [`${by["day"]} ${by["model"]!.split("/")[1]}`, costNano]),
  );
  for (const [name, cost] of traffic.spent)
    if (said.get(name) !== cost) wrong.push(`${name}: said ${said.get(name)}, written ${cost}`);
  const days = (await ask(["day"], { ...since, tz: ZONE })).sums.rows;
  for (const { by, costNano } of days)
    if (traffic.spentIn.get(by["day"]!) !== costNano)
      wrong.push(
        `${by["day"]} there: said ${costNano}, written ${traffic.spentIn.get(by["day"]!)}`,
      );
  if (said.size !== traffic.spent.size) wrong.push(`${said.size} rows, not ${traffic.spent.size}`);
  for (const { by, more } of REPORTS) {
    if (by.includes("account")) continue;
    const { rows, total } = (await ask(by, { ...more, ...since })).sums;
    const sum = rows.reduce((all, { costNano }) => all + costNano, 0n);
    if (sum !== total.costNano) wrong.push(`by ${by.join()}: rows ${sum}, total ${total.costNano}`);
  }
}

export async function largeLedger(
  of: Of & { readonly timed: number; readonly patience: number; readonly say: Say },
): Promise<RigResult> {
  const { say } = of;
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  const folder = await mkdtemp(join(tmpdir(), "tollgate-size-"));
  const file = join(folder, "ledger.db");
  try {
    const traffic = new Traffic(chanced, "r");
    const filling = await onFile(file, { durability: "relaxed" });
    await filling.store.open({ instance: "filling" });
    await fill(filling.store, traffic, of, chanced, say);
    await filling.dispose();

    const made = await onFile(file, { durability: "power" });
    await made.store.open({ instance: "filling" });
    const { store } = made;
    const ask = asking(store);
    say(`first report in ${Math.round((await ask(["day", "model"])).ms)} ms`);
    const alone = await commits(store, traffic, of.timed, () => true);
    say(`commits alone: p50 ${alone.p50} ms, p99 ${alone.p99} ms`);
    const times = new Map<string, number[]>();
    let over = false;
    const asked = (async () => {
      for (let round = 0; round < 5; round++)
        for (const { by, more } of REPORTS) {
          const name = `${by.join()}${more ? ` ${JSON.stringify(more)}` : ""}`;
          times.set(name, [...(times.get(name) ?? []), (await ask(by, more)).ms]);
        }
      over = true;
    })();
    const beside = await commits(store, traffic, of.timed, () => over);
    await asked;
    say(`commits beside reports: p50 ${beside.p50} ms, p99 ${beside.p99} ms`);
    for (const [name, took] of times)
      say(`usage --since 30d --by ${name}: ${took.map((ms) => Math.round(ms)).join(", ")} ms`);
    // The shortest of five, because other load on the machine is irrelevant.
    const month = Math.round(Math.min(...times.get("day,model")!));
    if (month > ALLOWED_MS * of.patience) wrong.push(`the month by day and model took ${month} ms`);
    if (waitsMore(alone.p99, beside.p99, of.patience))
      wrong.push(`commits took ${alone.p99} ms at p99, and ${beside.p99} ms beside reports`);
    await judge(ask, traffic, wrong);
    const began = performance.now();
    for (const { path, message } of (await store.verify?.()) ?? [])
      wrong.push(`${path} ${message}`);
    say(`verified in ${seconds(began)} s`);
    const [ledger, rollups] = await Promise.all([stat(file), stat(`${file}.rollups`)]);
    await made.dispose();
    const counts = {
      rows: of.rows,
      month_ms: month,
      p99_alone_ms: alone.p99,
      p99_beside_ms: beside.p99,
      ledger_mb: Math.round(ledger.size / 1e6),
      rollups_mb: Math.round(rollups.size / 1e5) / 10,
    };
    return { wrong, counts, seed: of.seed };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** In a process of its own, whose threads have the planted line too. Returns its findings. */
export async function found(
  mutant: Mutant,
  { rows, timed, seed }: Of & { readonly timed: number },
): Promise<readonly string[]> {
  const main = join(import.meta.dirname, "../main.ts");
  const options = ["--rows", `${rows}`, "--timed", `${timed}`, "--seed", `${seed}`];
  const args = ["--conditions=tollgate-source", main, "ledger-size", ...options];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...preloaded(MUTANTS[mutant]) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  for await (const piece of child.stdout.setEncoding("utf8")) said += String(piece);
  return said.split("\n").filter((line) => line.startsWith("  wrong: "));
}

export const rig: Rig = {
  options: { rows: 200_000, timed: 600, patience: 1, seed: Date.now() % 1e6, mutant: "" },
  run: async ({ rows, timed, seed, patience, mutant }, say) => {
    const of = { rows: Number(rows), timed: Number(timed), seed: Number(seed) };
    const planted = mutantOf(MUTANTS, mutant);
    if (planted === undefined) return largeLedger({ ...of, patience: Number(patience), say });
    return { wrong: await found(planted, of), counts: { rows: of.rows }, seed: of.seed };
  },
};
