// A gateway is replaced repeatedly under load with open streams: no request is lost, and every call
// is settled once. Then a process is killed: a new process that never serves changes nothing, and
// open calls of a killed old one are settled.
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { runPaced } from "../load/paced-loop.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const yaml = (workers: number) => `
frontends: [chat-completions]
middleware: [auth, limits]
workers: ${workers}
shutdown: { timeout: 12s }
providers:
  demo: { use: demo, with: { pace_ms: 20 } }
`;

/** The killed process, if any. */
export type Killed = "nobody" | "successor" | "predecessor";

export interface UpgradeOf {
  readonly upgrades: number;
  readonly perSecond: number;
  readonly workers: number;
  readonly killed: Killed;
  readonly seed: number;
}

export async function upgrade(of: UpgradeOf): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const first = await startDaemon({ yaml: yaml(of.workers) });
  const pids = new Set([first.pid]);
  const asked: Promise<string | undefined>[] = [];
  let going = true;
  const load = runPaced(
    of.perSecond,
    () => going,
    () => asked.push(ask(first, chanced)),
  );
  const wrong: string[] = [];
  try {
    await sleep(500);
    for (let n = 0; n < of.upgrades; n++) {
      wrong.push(...(await replace(first, of.killed, pids)));
      await sleep(300);
    }
    going = false;
    await load;
    const said = (await Promise.all(asked)).filter((one) => one !== undefined);
    // A killed process loses its open requests, and nothing else.
    if (of.killed !== "predecessor") wrong.push(...said);
    else if (said.length === asked.length) wrong.push("nothing was answered");
    const served = await statusOf(first);
    await until(
      async () => (await statusOf(first)).oldProcess === undefined,
      () => "the old one ends",
    );
    wrong.push(...(await booked(first, asked.length, of.killed)));
    if (of.killed !== "successor" && served.pid === first.pid) wrong.push("nothing took over");
    return {
      wrong,
      counts: { asked: asked.length, broken: said.length, upgrades: of.upgrades },
      seed: of.seed,
    };
  } finally {
    going = false;
    const last = await statusOf(first).then(
      ({ pid }) => pid,
      () => first.pid,
    );
    pids.add(last);
    for (const pid of pids) end(pid);
    await Promise.allSettled(asked);
    await first[Symbol.asyncDispose]();
  }
}

const statusOf = async (daemon: Daemon): Promise<GatewayStatus> =>
  (await daemon.ask("status")) as unknown as GatewayStatus;

/** Starts one more process. Returns the errors. */
async function replace(daemon: Daemon, killed: Killed, pids: Set<number>): Promise<string[]> {
  const { pid: old } = await statusOf(daemon);
  process.kill(old, "SIGUSR2");
  if (killed === "successor") {
    const child = await childOf(old);
    // At any moment between its first line and its first request.
    await sleep(Math.random() * 600);
    end(child);
    await until(
      async () => (await statusOf(daemon).catch(() => undefined))?.lastHotRestart !== undefined,
      () => "it is told",
    );
    const { pid } = await statusOf(daemon);
    return pid === old ? [] : [`${pid} serves in the place of ${old}, though it was killed`];
  }
  let now: GatewayStatus | undefined;
  await until(
    async () =>
      (now = await statusOf(daemon).catch(() => undefined)) !== undefined &&
      now.pid !== old &&
      // Its control socket responds before it has a client port.
      now.state === "ready",
    () => "another process serves",
  );
  pids.add(now!.pid);
  if (killed === "predecessor") end(old);
  return now!.lastHotRestart ? [now!.lastHotRestart.reason] : [];
}

/** PID of the process that was started last, without its workers. */
async function childOf(pid: number): Promise<number> {
  let found: number | undefined;
  await until(
    async () => {
      const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
      for (const child of text.split(" ").filter(Boolean).map(Number)) {
        const words = await readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "");
        if (words.includes("bin.")) found = child;
      }
      return found !== undefined;
    },
    () => "it starts another one",
  );
  return found!;
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Every call has ended once, none is open, and the ledger is valid. */
async function booked(daemon: Daemon, asked: number, killed: Killed): Promise<string[]> {
  const wrong: string[] = [];
  const open = new Set<string>();
  const settled = new Map<string, string>();
  let after: string | undefined;
  do {
    const page = (await daemon.ask("ledger.entries", {
      limit: 500,
      ...(after && { after }),
    })) as unknown as {
      items: { kind: string; attempt: string; outcome: string }[];
      next?: string;
    };
    for (const { kind, attempt, outcome } of page.items)
      if (kind === "reserve") open.add(attempt);
      else if (kind === "settle") {
        if (settled.has(attempt)) wrong.push(`${attempt} is settled twice`);
        settled.set(attempt, outcome);
        open.delete(attempt);
      }
    after = page.next;
  } while (after !== undefined);
  if (open.size > 0) wrong.push(`${open.size} calls are open`);
  const recovered = [...settled.values()].filter((outcome) => outcome === "recovered").length;
  if (killed !== "predecessor" && recovered > 0) wrong.push(`${recovered} calls were recovered`);
  if (killed !== "predecessor" && settled.size !== asked)
    wrong.push(`${settled.size} calls were settled, of ${asked} requests`);
  const { problems } = (await daemon.ask("ledger.verify")) as unknown as { problems: object[] };
  return [...wrong, ...problems.map((each) => JSON.stringify(each))];
}

/** Undefined if the response was complete. */
async function ask({ url, key }: Daemon, chanced: Chance): Promise<string | undefined> {
  const stream = chanced.often(0.5);
  const words = chanced.often(0.2) ? 80 : 1 + chanced.below(10);
  const content = Array.from({ length: words }, (_, i) => `word${i}`).join(" ");
  const anew = chanced.often(0.3);
  try {
    const res = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        ...(anew && { connection: "close" }),
      },
      body: JSON.stringify({
        model: stream ? "demo/slow" : "demo/echo",
        stream,
        messages: [{ role: "user", content }],
      }),
    });
    const text = await res.text();
    if (res.status !== 200) return `${res.status} ${text.slice(0, 200)}`;
    return !stream || text.includes("data: [DONE]") ? undefined : `cut: ${text.slice(-100)}`;
  } catch (error) {
    return `no answer: ${String((error as Error).cause ?? error)}`;
  }
}

export const rig: Rig = {
  options: { upgrades: 5, rate: 50, workers: 1, kill: "nobody", seed: Date.now() % 1e6 },
  run: ({ upgrades, rate, workers, kill, seed }) =>
    upgrade({
      upgrades: Number(upgrades),
      perSecond: Number(rate),
      workers: Number(workers),
      killed: kill as Killed,
      seed: Number(seed),
    }),
};
