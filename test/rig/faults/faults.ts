// Every failure of providers, from the lookup of a name to the usage report, through every frontend
// into every protocol, streaming and non-streaming. In time, the client gets a status or an error
// of its protocol, and the ledger gets the right row.
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "tollgate/plugin";
import type { UpstreamRequest } from "tollgate/testing";
import type { Daemon } from "../../kit/process/daemon.ts";
import { fits, rowKind, said, seen, type Heard } from "./client-view.ts";
import { FAULTS, GROUPS, LIMITS, type Fault, type Outcome, type Place } from "./failure-modes.ts";
import { goodAnswer } from "./good-responses.ts";
import { asking, ROADS, UPSTREAMS, type Road, type UpstreamName } from "./request-paths.ts";
import { openStage } from "./stage.ts";
import type { ChangedSource } from "../mutants/changed-source.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { askHealth } from "../load/load-generator.ts";

/** With `--all`, the number of runs on each path. */
const TIMES = 50;
/**
 * Number in parallel: requests with a response, requests that wait for a limit (which cost nothing
 * meantime), and large ones.
 */
const AT_ONCE = { quick: 32, waiting: 192, heavy: 1 } as const;
type Pace = keyof typeof AT_ONCE;
/**
 * A failure puts its model in cooldown, so each request has its own model for as long as a gateway
 * runs.
 */
const TIMES_A_DAEMON = 5;
/**
 * Slack beyond a limit: twice the sweep interval, and twice the machine's delay of a trivial
 * response.
 */
const SLACK_MS = 2_500;
const HEALTH_EVERY_MS = 50;

/** Planted defects of the gateway, which must be found. */
const MUTANTS = {
  // An error that is not in the protocol's format.
  shapeless: { in: "protocols/messages/server/fault.ts", line: 'type: "error",', instead: "" },
  // Bills a request that was never sent.
  billed: { in: "pipeline/metering/call-tally.ts", line: '? "void"', instead: '? "estimated"' },
  // Checks its limits much too late.
  late: {
    in: "pipeline/admission/timer-wheel.ts",
    line: "const TICK_MS = 250;",
    instead: "const TICK_MS = 8_000;",
  },
  // A failure that no client sees.
  unhandled: {
    in: "pipeline/metering/call-tally.ts",
    line: "const now = performance.now();",
    instead: 'const now = performance.now(); void Promise.reject(new Error("planted"));',
  },
} as const satisfies Record<string, ChangedSource>;

export interface FaultsOptions {
  readonly times: number;
  readonly seed: number;
  /** Runs failures whose name contains this text. */
  readonly only: string;
  /** Factor for the slack: 1, or more on a busy machine. */
  readonly patience: number;
  readonly say?: (line: string) => void;
  readonly mutant?: keyof typeof MUTANTS;
}

interface Case {
  readonly fault: Fault;
  readonly road: Road;
  readonly tag: string;
  readonly model: string;
}

/**
 * `late`: how far beyond its limit the last response arrived. `idle`: the longest time of a trivial
 * response.
 */
interface Counts {
  requests: number;
  late: number;
  idle: number;
}

export async function faults(of: FaultsOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const found = new Findings();
  const counts: Counts = { requests: 0, late: 0, idle: 0 };
  const began = performance.now();
  const chosen = FAULTS.map((fault, n) => ({ fault, n })).filter(({ fault }) =>
    fault.name.includes(of.only),
  );
  for (let done = 0; done < of.times; done += TIMES_A_DAEMON) {
    const times = Math.min(TIMES_A_DAEMON, of.times - done);
    await round(chosen, times, chanced, found, counts, of);
    const seconds = Math.round((performance.now() - began) / 1_000);
    of.say?.(
      `${done + times} of ${of.times} times in ${seconds} s, ${counts.requests} requests, ${found.count} wrong`,
    );
  }
  return {
    wrong: found.lines(),
    counts: {
      faults: chosen.length,
      roads: ROADS.length,
      ...counts,
      late: `${Math.round(counts.late)}ms`,
      idle: `${Math.round(counts.idle)}ms`,
      load: loadavg()[0]!.toFixed(1),
      seconds: Math.round((performance.now() - began) / 1_000),
    },
    seed: of.seed,
  };
}

async function round(
  chosen: readonly { fault: Fault; n: number }[],
  times: number,
  chanced: Chance,
  found: Findings,
  counts: Counts,
  { patience, mutant }: FaultsOptions,
): Promise<void> {
  const used = new Map<`${Place} ${UpstreamName}`, number>();
  let made = 0;
  const cases = chosen.flatMap(({ fault, n }) =>
    ROADS.flatMap((road) =>
      Array.from({ length: times }, (): Case => {
        const { provider, model } = UPSTREAMS[road.into];
        const place = fault.place ?? "plain";
        const at = `${place} ${road.into}` as const;
        const fresh = used.get(at) ?? 0;
        used.set(at, fresh + 1);
        const tag = `fault=${n} once=${made++}`;
        return { fault, road, tag, model: `${place}-${provider}/${model}${fresh}` };
      }),
    ),
  );
  const answer = (asked: UpstreamRequest) => {
    const { uncounted, answer } = FAULTS[Number(/fault=(\d+)/.exec(String(asked.body))?.[1])]!;
    return answer!(goodAnswer(asked, uncounted !== true), chanced);
  };
  await using stage = await openStage(answer, used, mutant && MUTANTS[mutant]);
  const heard = new Map<string, Heard>();
  const play = async (pace: Pace) => {
    const some = shuffled(
      cases.filter(({ fault }) => paceOf(fault) === pace),
      chanced,
    );
    let next = 0;
    const lane = async () => {
      while (next < some.length) {
        const one = some[next++]!;
        heard.set(one.tag, await ask(stage.daemon, one));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE[pace] }, lane));
  };
  const looking = new AbortController();
  const looked = idle(stage.daemon.url, looking.signal, counts);
  // Large bodies need CPU time, so only one runs next to those that wait.
  await Promise.all([play("quick").then(() => play("heavy")), play("waiting")]);
  looking.abort();
  await looked;
  const rows = await rowsOf(stage.daemon, cases.length).catch((problem: unknown) => {
    found.add(`nobody has its rows: ${String(problem)}`);
    return new Map<string, LedgerEntry[]>();
  });
  counts.requests += cases.length;
  for (const one of cases) {
    const problem = judged(one, heard.get(one.tag)!, rows.get(one.tag) ?? [], counts, patience);
    if (problem) found.add(`${one.fault.name}: ${problem}`, one.road);
  }
  for (const problem of unwell(stage.daemon)) found.add(problem);
}

const paceOf = ({ heavy, waits }: Fault): Pace => (heavy ? "heavy" : waits ? "waiting" : "quick");

/** The same problem on many paths is one line. */
class Findings {
  readonly #on = new Map<string, Set<string>>();
  count = 0;

  add(problem: string, road?: Road): void {
    this.count++;
    const on = this.#on.get(problem) ?? new Set();
    this.#on.set(problem, on);
    if (road) on.add(`${road.from} into ${road.into}, ${road.stream ? "streamed" : "whole"}`);
  }

  lines(): string[] {
    return [...this.#on].map(([problem, on]) => `${problem} (${[...on].join("; ")})`);
  }
}

function judged(
  { fault, road }: Case,
  heard: Heard,
  rows: LedgerEntry[],
  counts: Counts,
  patience: number,
) {
  const { from, stream } = road;
  const got = seen(from, stream, heard);
  const row = rowKind(rows[0]?.state);
  const limit = fault.heavy ? LIMITS.total : fault.waits ? LIMITS[fault.waits] : 0;
  counts.late = Math.max(counts.late, heard.ms - limit);
  if (rows.length !== 1) return `${rows.length} rows; ${said(got, row)}`;
  if (heard.ms > limit + SLACK_MS * patience + 2 * counts.idle)
    return `it took ${heard.ms.toFixed(0)} ms`;
  const expected = stream ? fault.stream : fault.whole;
  const fitting = (outcome: Outcome) =>
    fits(outcome, got, row) && (!outcome.of || GROUPS[outcome.of](road));
  return expected.some(fitting) ? undefined : said(got, row);
}

async function idle(url: string, over: AbortSignal, counts: Counts): Promise<void> {
  while (!over.aborted) {
    counts.idle = Math.max(counts.idle, await askHealth(url));
    await sleep(HEALTH_EVERY_MS);
  }
}

const shuffled = <T>(all: readonly T[], chanced: Chance): T[] =>
  all
    .map((one) => ({ one, by: chanced() }))
    .toSorted((a, b) => a.by - b.by)
    .map(({ one }) => one);

async function ask({ url, key }: Daemon, { road, tag, model }: Case): Promise<Heard> {
  const { path, body } = asking(road, tag, model);
  const began = performance.now();
  const over = (status: number, headers: Headers, text: string, cut = false): Heard => ({
    status,
    headers,
    text,
    cut,
    ms: performance.now() - began,
  });
  try {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        ...(typeof body === "string" && { "content-type": "application/json" }),
        "x-rig": tag,
        ...(road.from === "messages" ? { "x-api-key": key } : { authorization: `Bearer ${key}` }),
      },
      body,
    });
    let text = "";
    const reader = new TextDecoder();
    try {
      for await (const chunk of answer.body!) text += reader.decode(chunk, { stream: true });
    } catch {
      return over(answer.status, answer.headers, text, true);
    }
    return over(answer.status, answer.headers, text);
  } catch {
    return over(0, new Headers(), "");
  }
}

/** The settles by request, as soon as all exist or their time is over. */
async function rowsOf(daemon: Daemon, expected: number): Promise<Map<string, LedgerEntry[]>> {
  for (const end = performance.now() + 5_000; ; await sleep(100)) {
    const rows = new Map<string, LedgerEntry[]>();
    let after: string | undefined;
    do {
      const page = (await daemon.ask("ledger.entries", {
        ...(after !== undefined && { after }),
        limit: 1_000,
      })) as unknown as { items: LedgerEntry[]; next?: string };
      for (const entry of page.items) {
        const tag = entry.labels["x-rig"];
        if (entry.kind === "settle" && tag !== undefined)
          rows.set(tag, [...(rows.get(tag) ?? []), entry]);
      }
      after = page.next;
    } while (after !== undefined);
    if (rows.size >= expected || performance.now() > end) return rows;
  }
}

/** Log lines of a damaged gateway. */
function unwell({ log }: Daemon): string[] {
  return log
    .filter(({ level, msg }) => level === "fatal" || /uncaught|unhandled|rejection/i.test(msg))
    .map((line) => `the daemon logs: ${JSON.stringify(line).slice(0, 400)}`);
}

export const rig: Rig = {
  options: { all: false, times: 0, seed: Date.now() % 1e6, only: "", patience: 1 },
  run: ({ all, times, seed, only, patience }, say) =>
    faults({
      times: Number(times) || (all === "true" ? TIMES : 1),
      seed: Number(seed),
      only: only ?? "",
      patience: Number(patience),
      say,
    }),
};
