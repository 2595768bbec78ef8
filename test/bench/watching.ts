// `npm run bench -- --watched` runs it: the cost of observers per request, in isolation. One
// process sends the same requests and bills to no observer, to some, and to all, in short turns, so
// that other load affects all alike. It resolves a tenth of a microsecond on a busy machine. All
// threads, garbage collections, and writes count. Effects on the caches of a whole gateway are
// measured by the lanes.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ObserverDef } from "tollgate/plugin";
import { createTestContext } from "tollgate/testing";
import { disablePretenuring } from "../../src/cli/support/process-setup.ts";
import accessLog from "../../plugins/observers/access-log.ts";
import metrics from "../../plugins/observers/metrics.ts";
import otlp from "../../plugins/observers/otlp.ts";
import { createProviderClient } from "../../src/runtime/plugin-host/provider-client.ts";
import { ObserverHub } from "../../src/runtime/observers/observer-hub.ts";
import type { MountedObserver } from "../../src/runtime/observers/observer-subscriber.ts";
import { newTraceId } from "../../src/lib/trace-context.ts";
import { reserveCommand, settleCommand } from "../../src/testing/store.ts";
import { createRequestRecord } from "../kit/request-record.ts";
import { median } from "./rounds.ts";

const ROUNDS = 120;
/** JIT compilers optimize in the first turns. */
const SETTLED = ROUNDS / 4;
/** Requests of one turn, and of one turn of the event loop. */
const REQUESTS = 2_048;
const AT_ONCE = 16;
/** By then, batches are written and a POST is answered. */
const REST_MS = 40;
/** A request allocates about fifty thousand other bytes, which affect garbage collection. */
const BALLAST = 600;

const log = { warn() {}, error() {} } as never;
const target = { provider: "up", model: "bench-s2048", protocol: "chat", credential: "default" };

let count = 0;
const digits = () => newTraceId().slice(0, 16);

function turn(audience: ObserverHub): void {
  const [records, reserves, settles] = [[], [], []] as [unknown[], unknown[], unknown[]];
  for (let i = 0; i < AT_ONCE; i++) {
    const n = ++count;
    const id = `BENCHBENC${n.toString(36).padStart(7, "0")}`;
    const usage = { input: 200 + (n % 50), output: 300 + (n % 70) };
    const costNano = BigInt(1_000_000 + n);
    const ms = { total: 2 + (n % 5), firstToken: 1 + (n % 3) };
    const call = {
      n: 1,
      startMs: 1,
      spanId: digits(),
      ...target,
      mode: "passthrough",
      state: "exact",
    };
    records.push(
      createRequestRecord({
        at: Date.now(),
        id,
        model: "up/bench-s2048",
        served: "up/bench-s2048",
        finish: "stop",
        client: "127.0.0.1",
        bytesIn: 1_100 + (n % 9),
        bytesOut: 2_400 + (n % 9),
        ms: 3 + (n % 5),
        firstTokenMs: ms.firstToken + 1,
        overheadMs: 0.25 + (n % 64) / 256,
        trace: { traceId: newTraceId(), spanId: digits() },
        calls: [{ ...call, usage, costNano, ms }] as never,
      }),
    );
    const attempt = `${id}.1`;
    reserves.push(reserveCommand(attempt, { request: id, at: Date.now(), target }));
    settles.push(settleCommand(attempt, { at: Date.now(), costNano, state: "exact", usage }));
    for (let j = 0; j < BALLAST; j++) void [n, j, n ^ j, `${j}`].length;
  }
  const verdicts = records.map(() => ({ ok: true }) as never);
  audience.reportCommit(reserves as never, verdicts);
  audience.reportCommit(settles as never, verdicts);
  for (const record of records) audience.reportRequest(record as never);
}

/** Microseconds of all threads per request. */
async function cost(audience: ObserverHub): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < REQUESTS; i += AT_ONCE) {
    turn(audience);
    await new Promise(setImmediate);
  }
  await sleep(REST_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUESTS;
}

/**
 * Formats the medians of all turns, and the difference to the turn without observers in the same
 * round.
 */
async function watching(collector: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-bench-"));
  const mounted = async (def: ObserverDef, options: object): Promise<MountedObserver> => {
    const id = `observers.${def.name}`;
    const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
    const { fetch } = createProviderClient({
      reach: undefined,
      dispatcher: undefined,
      credential,
      signal: new AbortController().signal,
      allowedOrigins: new Set([new URL(collector).origin]),
    });
    const { ctx } = createTestContext({ id, stateDir: dir, fetch: fetch as never, env: {} });
    return { id, observer: await def.setup(options as never, ctx), sends: def.sends };
  };
  const all = [
    await mounted(metrics as never, { genai_names: "both" }),
    await mounted(accessLog as never, {
      file: join(dir, "access.log"),
      format: "json",
      sample: {},
      client_address: "prefix",
    }),
    await mounted(otlp as never, {
      endpoint: collector,
      genai_names: "both",
      retry_ms: 1_000,
      slow_ms: 10_000,
      include_keys: false,
      include_labels: false,
    }),
  ];
  const sides = ["none", "metrics", "and access-log", "and otlp"].map((name, i) => {
    const audience = new ObserverHub(log);
    audience.attach(all.slice(0, i));
    return { name, audience, took: [] as number[] };
  });
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const order = round % 2 ? sides.toReversed() : sides;
      for (const { audience, took } of order) took.push(await cost(audience));
    }
    return sides
      .map(({ name, took }) => {
        const more = took.map((us, i) => us - sides[0]!.took[i]!).slice(SETTLED);
        return `${median(more).toFixed(2).padStart(9)}  ${name}`;
      })
      .join("\n");
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

disablePretenuring();
process.stdout.write(`µs a request, of all threads\n${await watching(process.argv[2]!)}\n`);
process.exit(0);
