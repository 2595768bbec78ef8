// Clients of every protocol send requests continuously while their gateway is killed, stopped and
// started, replaced in place, and given a new certificate. Its parent holds its ports, like a
// service manager. Only requests that a kill interrupted fail, and the ledger equals the bill.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { LedgerEntry } from "tollgate/plugin";
import { Agent, setGlobalDispatcher } from "undici";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { until } from "../../kit/wait.ts";
import { startBillingUpstream, billing, FRONTENDS } from "../money/billing-upstream.ts";
import { judged } from "../ledger/crash-checks.ts";
import { authority } from "../faults/certificates.ts";
import { startPortHolder, type Holder } from "./port-holder.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { ask, nextRequest, TARGETS, type ClientResult } from "../load/traffic.ts";

/** On both ports, with reused connections and with one per request. */
const LANES = 8;
const HOST = "localhost";
/** Pause between two events. */
const PAUSE_MS = 400;
const ANNOUNCE_MS = 300;
/**
 * Maximum wait of a client for its connection, including the handshake: longer than a gateway's
 * start on a busy machine.
 */
const PATIENCE_MS = 120_000;

export const EVENTS = ["kill", "term", "usr2", "certificate"] as const;
export type Event = (typeof EVENTS)[number];

/** Planted defects that must be found. */
export type Planted = "none" | "kill-for-usr2" | "hurry" | "strange-certificate" | "own-port";

export interface UnbrokenOf {
  readonly events: readonly Event[];
  readonly workers: number;
  readonly seed: number;
  readonly planted?: Planted;
  readonly say?: (line: string) => void;
}

/** A request with its duration. */
interface Timed extends ClientResult {
  readonly from: number;
  readonly to: number;
}

const yaml = (url: string, [http, https]: readonly number[], { workers, planted }: UnbrokenOf) => `
frontends: ${FRONTENDS}
retries: { per_target: 1 }
workers: ${workers}
state_dir: ./state
shutdown: { announce: ${ANNOUNCE_MS}ms, timeout: ${planted === "hurry" ? "1ms" : "20s"} }
listen:
  - { host: 127.0.0.1, port: ${http} }
  - { host: 127.0.0.1, port: ${https}, tls: { cert: cert.pem, key: key.pem } }
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
providers:${billing(url)}
models:
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
`;

export async function unbroken(of: UnbrokenOf): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const { planted = "none" } = of;
  const ours = authority();
  const first = ours.issue({ name: HOST });
  setGlobalDispatcher(new Agent({ connect: { timeout: PATIENCE_MS } }));
  setDefaultCACertificates([...getCACertificates(), ours.root]);
  await using upstream = await startBillingUpstream();
  await using gate = await startPortHolder({
    ports: 2,
    hands: planted !== "own-port",
    files: (ports) => ({
      "gateway.yaml": yaml(upstream.up.url, ports, of),
      "cert.pem": first.cert,
      "key.pem": first.key,
    }),
  });
  await gate.start();
  const heard: Timed[] = [];
  const kills: { readonly from: number; readonly to: number }[] = [];
  let going = true;
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    asking(gate, {
      lane,
      chanced: createChance(of.seed * LANES + lane),
      heard,
      going: () => going,
    }),
  );
  try {
    await sleep(PAUSE_MS);
    for (const event of of.events) {
      const began = performance.now();
      if (event === "certificate") {
        const by = planted === "strange-certificate" ? authority("Strange") : ours;
        await anotherCertificate(gate, by.issue({ name: HOST }));
      } else if (event === "usr2")
        await (planted === "kill-for-usr2" ? again(gate, "SIGKILL") : gate.replace());
      else {
        const at = performance.now();
        await again(gate, event === "kill" ? "SIGKILL" : "SIGTERM");
        if (event === "kill") kills.push({ from: at, to: gate.endedAt });
      }
      of.say?.(`${event.padEnd(12)} ${(performance.now() - began).toFixed(0)} ms`);
      await sleep(PAUSE_MS + chanced.below(PAUSE_MS));
    }
  } finally {
    going = false;
    await Promise.all(lanes);
  }
  const wrong = heard.flatMap((one) => failed(one, kills));
  await until(
    async () => {
      const { oldProcess, generations } = (await gate.ask("status")) as unknown as GatewayStatus;
      return oldProcess === undefined && generations.every(({ inFlight }) => inFlight === 0);
    },
    () => "nothing is under way",
  );
  const { problems } = (await gate.ask("ledger.verify")) as { problems: { message: string }[] };
  const entries = await entriesOf(gate);
  wrong.push(...problems.map(({ message }) => message), ...judged(entries, upstream.bill, heard));
  const delivered = heard.filter((one) => one.delivered).length;
  return {
    wrong,
    counts: {
      events: of.events.length,
      asked: heard.length,
      delivered,
      left: heard.filter(({ request }) => request.leaves !== undefined).length,
      broken: heard.filter((one) => !one.delivered && one.request.leaves === undefined).length,
      billed: upstream.bill.length,
    },
    seed: of.seed,
  };
}

/**
 * One client after another. On a reused connection, each response states whether it is the last
 * one.
 */
async function asking(
  gate: Holder,
  of: { lane: number; chanced: Chance; heard: Timed[]; going: () => boolean },
): Promise<void> {
  for (let n = 0; of.going(); n++) {
    const request = nextRequest(of.chanced, `${of.lane}.${n}`);
    const [http, https] = gate.ports;
    const url = of.lane % 2 === 0 ? `http://${HOST}:${http}` : `https://${HOST}:${https}`;
    const from = performance.now();
    const one = await ask(url, gate.key, request, { anew: of.lane % 4 < 2 });
    of.heard.push({ ...one, from, to: performance.now() });
  }
}

/** Like a service manager. */
async function again(gate: Holder, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  await gate.end(signal);
  await gate.start();
}

/** All lines except those of requests. */
const said = (gate: Holder): string =>
  gate
    .output()
    .split("\n")
    .filter((line) => !line.includes('"request":'))
    .join("\n");

async function anotherCertificate(gate: Holder, next: { cert: string; key: string }) {
  const lines = () => gate.output().split("certificate reloaded").length;
  const before = lines();
  await writeFile(join(gate.dir, "cert.pem"), next.cert);
  await writeFile(join(gate.dir, "key.pem"), next.key);
  await until(
    () => lines() > before,
    () => `certificate reloaded; it said ${said(gate)}`,
  );
}

/** Only a kill may interrupt a request. A client's own disconnect is no failure. */
function failed(
  { request, delivered, status, text, why, from, to }: Timed,
  kills: readonly { readonly from: number; readonly to: number }[],
): string[] {
  const left = request.leaves !== undefined && status === 200 && why === undefined;
  if (delivered || left) return [];
  if (kills.some((kill) => from < kill.to && to > kill.from)) return [];
  const said = `${status} ${why ?? ""} ${text.slice(0, 100)} … ${text.slice(-100)}`;
  return [`${request.tag} ${request.path}${request.stream ? ", streamed" : ""}: ${said}`];
}

async function entriesOf(gate: Holder): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const asked = { limit: 1_000, ...(after !== undefined && { after }) };
    const page = (await gate.ask("ledger.entries", asked)) as unknown as {
      items: LedgerEntry[];
      next?: string;
    };
    // JSON has no bigint.
    for (const entry of page.items)
      entries.push({ ...entry, costNano: entry.costNano == null ? null : BigInt(entry.costNano) });
    after = page.next;
  } while (after !== undefined);
  return entries;
}

export const rig: Rig = {
  options: { events: 20, workers: 1, plant: "none", seed: Date.now() % 1e6 },
  run: ({ events, workers, plant, seed }, say) => {
    const chanced = createChance(Number(seed));
    return unbroken({
      events: Array.from({ length: Number(events) }, () => chanced.one(EVENTS)),
      workers: Number(workers),
      planted: plant as Planted,
      seed: Number(seed),
      say,
    });
  },
};
