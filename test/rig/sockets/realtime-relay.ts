// What a relayed Realtime connection costs: so many sockets of paced audio events, through a relay that
// only forwards and through the gateway, in one run. Each event carries the time at which the provider
// sent it. The gateway also has to bill every response that a client saw end.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { cpu, rss } from "../../bench/process.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import type { Rig, RigResult } from "../rig.ts";
import { readEntries } from "./sockets.ts";

interface RelayOptions {
  readonly sockets: number;
  readonly seconds: number;
  /** Milliseconds between two events of one socket. */
  readonly pace: number;
  /** Audio events of each response. */
  readonly events: number;
}

interface Measured {
  /** Microseconds from the provider's send to the client's receipt. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of processor time of the relay, by event. */
  readonly cpu: number;
  readonly rss: number;
  readonly events: number;
  /** IDs of the responses that ended. */
  readonly done: readonly string[];
}

const OPEN_AT_ONCE = 20;

/** Starts a part of the rig, and returns the port on which it listens. */
async function part(
  file: string,
  ...args: string[]
): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(join(import.meta.dirname, file), args);
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  return { child, port };
}

async function measure(url: string, key: string, pid: number, of: RelayOptions): Promise<Measured> {
  const sockets: WebSocket[] = [];
  const delays: number[] = [];
  const done: string[] = [];
  let isMeasuring = false;
  const open = () =>
    new Promise<void>((resolve, reject) => {
      const socket = new WebSocket(url, {
        perMessageDeflate: false,
        headers: { authorization: `Bearer ${key}` },
      });
      sockets.push(socket);
      socket.once("open", resolve);
      socket.once("error", reject);
      socket.on("message", (data: Buffer) => {
        const now = process.hrtime.bigint();
        // The first member of each event.
        const text = data.toString("latin1", 0, 80);
        const sent = /"event_(\d+)"/.exec(text)?.[1];
        if (isMeasuring && sent !== undefined) delays.push(Number(now - BigInt(sent)) / 1_000);
        if (text.includes('"response.done"')) {
          const { response } = JSON.parse(data.toString()) as { response: { id: string } };
          done.push(response.id);
        }
      });
    });
  for (let at = 0; at < of.sockets; at += OPEN_AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(OPEN_AT_ONCE, of.sockets - at) }, open));
  await sleep(2_000);
  const before = cpu(pid);
  isMeasuring = true;
  await sleep(of.seconds * 1_000);
  isMeasuring = false;
  const used = cpu(pid) - before;
  const held = rss(pid);
  for (const socket of sockets) socket.close();
  await Promise.all(sockets.map((socket) => once(socket, "close")));
  delays.sort((a, b) => a - b);
  const at = (share: number) => Math.round(delays[Math.floor(delays.length * share)] ?? 0);
  const events = delays.length;
  return { p50: at(0.5), p99: at(0.99), cpu: Math.round(used / events), rss: held, events, done };
}

export async function relayCost(of: RelayOptions, say: (line: string) => void): Promise<RigResult> {
  const wrong: string[] = [];
  const provider = await part("paced-provider.ts", String(of.pace), String(of.events));
  const upstream = `ws://127.0.0.1:${provider.port}/v1/realtime?model=gpt-realtime`;
  const bare = await part("bare-relay.ts", upstream);
  await using gateway = await startDaemon({
    yaml: `
frontends: [realtime]
middleware: [auth, limits]
store: sqlite
providers:
  vendor:
    use: openai
    with: { base_url: "http://127.0.0.1:${provider.port}/v1", api_key: k }
    models: { gpt-realtime: { operation: realtime } }
`,
  });
  try {
    const relayed = await measure(`ws://127.0.0.1:${bare.port}/`, "", bare.child.pid!, of);
    const through = await measure(
      `${gateway.url.replace(/^http/, "ws")}/v1/realtime?model=vendor/gpt-realtime`,
      gateway.key,
      gateway.pid,
      of,
    );
    for (const [name, found] of Object.entries({ "bare relay": relayed, gateway: through }))
      say(
        `${name.padEnd(10)} p50 ${found.p50} µs, p99 ${found.p99} µs, CPU ${found.cpu} µs per event, ` +
          `${Math.round(found.rss / 2 ** 20)} MiB, ${found.events} events, ${found.done.length} responses`,
      );
    await sleep(1_000);
    const billed = (await readEntries(gateway)).filter(({ kind }) => kind === "settle").length;
    // Responses that were open when their clients left are billed too.
    if (billed < through.done.length)
      wrong.push(`${through.done.length} responses ended, and ${billed} are billed`);
    return {
      wrong,
      counts: {
        sockets: of.sockets,
        added_p50_us: through.p50 - relayed.p50,
        cpu_ratio: (through.cpu / relayed.cpu).toFixed(2),
        bare_cpu_us: relayed.cpu,
        gateway_cpu_us: through.cpu,
        billed,
      },
      seed: 0,
    };
  } finally {
    bare.child.kill();
    provider.child.kill();
  }
}

export const rig: Rig = {
  options: { sockets: 1_000, seconds: 20, pace: 500, events: 20 },
  run: ({ sockets, seconds, pace, events }, say) =>
    relayCost(
      {
        sockets: Number(sockets),
        seconds: Number(seconds),
        pace: Number(pace),
        events: Number(events),
      },
      say,
    ),
};
