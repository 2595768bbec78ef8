// `npm run bench -- --where`: where a request spends its time. It profiles one gateway under a
// lane's load through its inspector: CPU by thread, file, and function, allocated bytes by
// location, and the number of objects per request.
import { readdirSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { ended, ROOT, run, serving } from "./process.ts";
import { type Lane, laneOf } from "./lanes.ts";
import { callOf, toolFrontend, toTools, type Generation } from "./mcp/tool-targets.ts";
import { sample, type Side } from "./rounds.ts";
import { collecting, everyObserver, tollgate, type Target } from "./targets.ts";

/** Microseconds between two stack samples. */
const STEP_US = 100;
/** Bytes between two sampled allocations. */
const STEP_BYTES = 8_192;
const MOST_ROWS = 45;

/**
 * Counted in the gateway: asynchronous resources of Node by name, and instances of expensive
 * classes.
 */
const COUNTING = `(() => {
  const counts = (globalThis.__made = {});
  const count = (name) => void (counts[name] = (counts[name] ?? 0) + 1);
  for (const name of ["AbortController", "URL", "URLSearchParams", "Headers", "Request", "Response"]) {
    const Own = globalThis[name];
    globalThis[name] = class extends Own { constructor(...args) { super(...args); count(name); } };
    Object.defineProperty(globalThis[name], "name", { value: name });
  }
  const any = AbortSignal.any;
  AbortSignal.any = (...args) => { count("AbortSignal.any"); return any.apply(AbortSignal, args); };
  const hooks = process.getBuiltinModule("async_hooks");
  hooks.createHook({ init: (id, type) => count(type) }).enable();
})()`;

interface Node {
  readonly id: number;
  readonly callFrame: { functionName: string; url: string; lineNumber: number };
  readonly children?: readonly number[];
}
interface CpuProfile {
  readonly nodes: readonly Node[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}
interface HeapNode {
  readonly callFrame: Node["callFrame"];
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** Connection to the inspector of a process, over its own socket. */
class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #ids = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, result, error } = JSON.parse(String(data)) as {
        id?: number;
        result?: unknown;
        error?: { message: string };
      };
      const asked = this.#waiting.get(id ?? -1);
      this.#waiting.delete(id ?? -1);
      if (error) asked?.reject(new Error(error.message));
      else asked?.resolve(result);
    });
  }

  static async of(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error("no inspector answers")), {
        once: true,
      });
    });
    return new Inspector(socket);
  }

  ask<T>(method: string, params: object = {}): Promise<T> {
    const id = ++this.#ids;
    const asked = Promise.withResolvers<unknown>();
    this.#waiting.set(id, asked);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return asked.promise as Promise<T>;
  }

  close(): void {
    this.#socket.close();
  }
}

/** CPU time of each thread in microseconds, by its name. */
function threads(pid: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const of = `/proc/${pid}/task/${task}`;
    const name = Number(task) === pid ? "main" : readFileSync(`${of}/comm`, "utf8").trim();
    const us = Number(readFileSync(`${of}/schedstat`, "utf8").split(" ")[0]) / 1000;
    found.set(name, (found.get(name) ?? 0) + us);
  }
  return found;
}

const file = (url: string): string => {
  if (url === "") return "(engine)";
  if (!url.startsWith("file://")) return url;
  const path = relative(ROOT, url.slice(7));
  const [, pack] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  return pack ?? path;
};
const place = ({ functionName, url, lineNumber }: Node["callFrame"]): string =>
  `${functionName || "(anonymous)"} ${file(url)}${url.startsWith("file") ? `:${lineNumber + 1}` : ""}`;

type Sums = Map<string, number>;
const add = (sums: Sums, name: string, value: number) =>
  void sums.set(name, (sums.get(name) ?? 0) + value);

const rows = (title: string, sums: Sums, per: number, digits: number, most = MOST_ROWS): string =>
  [
    `\n${title}`,
    ...[...sums]
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, most)
      .map(([name, value]) => `${(value / per).toFixed(digits).padStart(9)}  ${name}`),
  ].join("\n");

async function timed(at: Inspector, load: () => Promise<number>): Promise<string> {
  await at.ask("Profiler.enable");
  await at.ask("Profiler.setSamplingInterval", { interval: STEP_US });
  await at.ask("Profiler.start");
  const requests = await load();
  const { profile } = await at.ask<{ profile: CpuProfile }>("Profiler.stop");
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const above = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const [files, functions, wholes]: [Sums, Sums, Sums] = [new Map(), new Map(), new Map()];
  for (const [i, id] of profile.samples.entries()) {
    const { callFrame } = byId.get(id)!;
    const { functionName, url } = callFrame;
    if (functionName === "(idle)") continue;
    const us = profile.timeDeltas[i]!;
    add(files, functionName.startsWith("(") ? functionName : file(url), us);
    add(functions, place(callFrame), us);
    const callers = new Set<string>();
    for (let at: number | undefined = id; at !== undefined; at = above.get(at))
      callers.add(place(byId.get(at)!.callFrame));
    for (const caller of callers) add(wholes, caller, us);
  }
  return (
    rows("µs a request by file, main thread, itself", files, requests, 2) +
    rows("µs a request by function, itself", functions, requests, 2, 90) +
    rows("µs a request by function, with all that it calls", wholes, requests, 2, 120)
  );
}

async function allocated(at: Inspector, load: () => Promise<number>): Promise<string> {
  await at.ask("HeapProfiler.enable");
  await at.ask("HeapProfiler.startSampling", {
    samplingInterval: STEP_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  const requests = await load();
  const { profile } = await at.ask<{ profile: { head: HeapNode } }>("HeapProfiler.stopSampling");
  const sites: Sums = new Map();
  let all = 0;
  const look = (node: HeapNode) => {
    if (node.selfSize > 0) add(sites, place(node.callFrame), node.selfSize);
    all += node.selfSize;
    node.children.forEach(look);
  };
  look(profile.head);
  return rows(
    `bytes a request by the function that asks for them, of ${(all / requests).toFixed(0)}`,
    sites,
    requests,
    0,
  );
}

async function made(at: Inspector, load: () => Promise<number>): Promise<string> {
  await at.ask("Runtime.evaluate", { expression: COUNTING });
  const requests = await load();
  const { result } = await at.ask<{ result: { value: Record<string, number> } }>(
    "Runtime.evaluate",
    { expression: "globalThis.__made", returnByValue: true },
  );
  return rows("made a request", new Map(Object.entries(result.value)), requests, 2);
}

interface WhereOptions {
  readonly warmMs: number;
  readonly durability: string;
  /** Mounted entries, in YAML's flow style. */
  readonly observers?: string;
  /** Generation of the calls of a tool. Default: the lane's own requests. */
  readonly tools?: Generation;
}

/** Lanes of a profiled gateway, and the load of each. */
const WATCHED: Readonly<Record<string, string>> = {
  metrics: "json-1k",
  "metrics-sse": "sse-full",
  everything: "json-1k",
  "everything-sse": "sse-full",
  mcp: "json-32",
  "mcp-session": "json-32",
};

export const isWatched = (name: string): boolean => Object.hasOwn(WATCHED, name);

/** Work of one gateway per request of the lane, as text. */
export async function where(name: string): Promise<string> {
  const of = { warmMs: 12_000, durability: "power" };
  const lane = laneOf(WATCHED[name] ?? name, { ms: 0, events: 30 });
  if (!isWatched(name)) return looked(lane, of);
  if (name.startsWith("mcp")) {
    const tools = name === "mcp" ? "stateless" : "session";
    return looked({ ...lane, name, body: callOf(tools) }, { ...of, tools });
  }
  if (name.startsWith("metrics")) return looked(lane, { ...of, observers: "[metrics]" });
  const sink = await collecting();
  try {
    return await looked(lane, { ...of, observers: everyObserver(sink.url) });
  } finally {
    sink.stop();
  }
}

async function looked(lane: Lane, of: WhereOptions): Promise<string> {
  const mock = await serving("mock.ts", [], 1);
  const driver = run([`${import.meta.dirname}/load.ts`], 1);
  const side: Side = { driver, mock };
  let target: Target | undefined;
  try {
    const { tools, ...options } = of;
    const frontend = tools && { frontend: toolFrontend(mock.port, tools) };
    const gate = await tollgate(mock.port, { ...options, ...frontend, inspect: true });
    target = gate;
    const measured = tools ? await toTools(gate, tools) : gate;
    const at = await Inspector.of(gate.inspector!);
    const load = async (ms: number) => {
      const { requests, events } = await sample(side, { ...lane, ms }, measured);
      return lane.per === "event" ? events : requests;
    };
    await load(of.warmMs);
    const before = threads(gate.pid!);
    const count = await load(4_000);
    const used: Sums = new Map(
      [...threads(gate.pid!)].map(([name, us]) => [name, us - (before.get(name) ?? 0)]),
    );
    const parts = [
      rows(`µs a request by thread, ${lane.name}`, used, count, 2),
      await timed(at, () => load(4_000)),
      await allocated(at, () => load(3_000)),
      await made(at, () => load(2_000)),
    ];
    at.close();
    return `${parts.join("\n")}\n`;
  } finally {
    await target?.stop();
    driver.disconnect();
    mock.child.disconnect();
    await Promise.all([ended(driver), ended(mock.child)]);
  }
}
