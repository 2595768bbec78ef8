// Three providers of one model under load: one is killed, one becomes slow, and one is
// rate-limited, and at each moment one is healthy. Clients notice nothing, and the operator sees
// outages and recoveries.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { runPaced } from "../load/paced-loop.ts";
import { preloaded, type ChangedSource } from "../mutants/changed-source.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const NAMES = ["killed", "slow", "limited"] as const;
type Name = (typeof NAMES)[number];

/** When each is unhealthy, as parts of the whole time: two at a time, and never three. */
type Illnesses = { readonly [N in Name]: readonly [from: number, to: number] };
function illnesses({ below }: Chance): Illnesses {
  const later = (part: number) => part + below(20) / 1_000;
  return {
    killed: [later(0.14), later(0.48)],
    limited: [later(0.29), later(0.64)],
    slow: [later(0.52), later(0.78)],
  };
}
const LIMITED_S = 2;
const FIRST_BYTE_MS = 2_000;
/** Maximum time to first token for a client: the timeout of a slow provider, and a little more. */
const MOST_P99_MS = 2 * FIRST_BYTE_MS;
const DRAWN_CHANCE = join(import.meta.dirname, "../mutants/drawn-chance.ts");
const LOST = "provider unavailable";
const REGAINED = "provider recovered";

/** Planted defect of the gateway, which must be found. */
const MUTANTS = {
  // A recovery is not reported to observers.
  unrecovered: {
    in: "pipeline/routing/target-health.ts",
    line: "this.#listener.onRecovery(ailment.scope);",
    instead: "",
  },
  // Every failure is attributed to the client.
  first: {
    in: "pipeline/routing/attempt-scheduler.ts",
    line: "if (this.#isExhausted())",
    instead: "if (true)",
  },
  // A failing target is called as often as others.
  tireless: {
    in: "pipeline/targets/circuit-breaker.ts",
    line: "if (!hasEnoughEvidence) return false;",
    instead: "return false;",
  },
} as const satisfies Record<string, ChangedSource>;

export interface FailoverOptions {
  readonly seconds: number;
  readonly rate: number;
  /** Seed of the failure times, the order of providers, and the gateway's random numbers. */
  readonly seed: number;
  readonly mutant?: keyof typeof MUTANTS;
}

export async function failover(of: FailoverOptions): Promise<RigResult> {
  const { seconds, rate, seed } = of;
  const wrong: string[] = [];
  const chanced = createChance(seed);
  const when = illnesses(chanced);
  const order = NAMES.map((name) => ({ name, by: chanced() }))
    .toSorted((a, b) => a.by - b.by)
    .map(({ name }) => name);
  let began = Infinity;
  const part = () => (performance.now() - began) / 1_000 / seconds;
  const ill = (name: Name) => part() >= when[name][0] && part() < when[name][1];
  const ups = new Map<Name, Provider>();
  for (const name of order) ups.set(name, await provider(() => ill(name), name));
  const daemon = await startDaemon({
    yaml: yaml(ups),
    env: {
      DRAWN_SEED: String(seed),
      ...preloaded(of.mutant && MUTANTS[of.mutant], DRAWN_CHANCE),
    },
  });
  const killer = setInterval(() => void ups.get("killed")!.alive(!ill("killed")), 50);
  try {
    began = performance.now();
    const waits: number[] = [];
    let errors = 0;
    const calls: Promise<void>[] = [];
    const watch = compared(daemon, seconds, wrong);
    await runPaced(
      rate,
      () => part() < 1,
      () => {
        calls.push(
          asked(daemon).then(
            (ms) => void waits.push(ms),
            (error: unknown) => {
              if (errors++ < 5) wrong.push(`a client saw ${String(error)} at ${part().toFixed(2)}`);
            },
          ),
        );
      },
    );
    await Promise.all(calls);
    await watch;
    if (errors > 0) wrong.push(`${errors} clients saw an error`);
    const p99 = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.99)]!;
    if (p99 > MOST_P99_MS)
      wrong.push(`the 99th of a hundred waited ${p99} ms for its first content`);
    for (const name of NAMES)
      for (const msg of [LOST, REGAINED]) {
        const lines = daemon.log.filter((one) => one.msg === msg && one["provider"] === name);
        if (lines.length !== 1) wrong.push(`${lines.length} lines say of ${name}: ${msg}`);
      }
    const counts = Object.fromEntries([...ups].map(([name, { count }]) => [name, count()]));
    return { wrong, counts: { ...counts, answers: waits.length, p99 }, seed };
  } finally {
    clearInterval(killer);
    await daemon[Symbol.asyncDispose]();
    for (const up of ups.values()) await up.alive(false);
  }
}

const yaml = (ups: ReadonlyMap<Name, Provider>) => `
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: memory
timeouts: { first_byte: ${FIRST_BYTE_MS}ms }
providers:
${[...ups].map(([name, { url }]) => `  ${name}: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k } }`).join("\n")}
models:
  any: { candidates: [${[...ups.keys()].map((name) => `${name}/m`).join(", ")}], pick: weighted }
`;

/** Output of `status` and `explain`, several times during failures. */
async function compared(daemon: Daemon, seconds: number, wrong: string[]): Promise<void> {
  let seen = 0;
  for (let i = 0; i < 10; i++) {
    await sleep(seconds * 90);
    let said = await both(daemon);
    // A cooldown may start or end between two of them.
    for (let more = 0; more < 5 && said.status !== said.explain; more++) said = await both(daemon);
    if (said.status !== said.explain)
      wrong.push(`status says ${said.status || "nothing"}, explain ${said.explain || "nothing"}`);
    if (said.status) seen++;
  }
  if (seen === 0) wrong.push("status says of none that it rests");
}

/** Cooldowns in each output. */
async function both(
  daemon: Daemon,
): Promise<{ readonly status: string; readonly explain: string }> {
  const { cooldowns } = (await daemon.ask("status")) as unknown as { cooldowns: Said[] };
  const { candidates } = (await daemon.ask("explain", { model: "any" })) as unknown as {
    candidates: { id: string; cooldown?: Said }[];
  };
  const out = (all: readonly string[]) => all.toSorted().join(", ");
  return {
    status: out(cooldowns.map(({ target, state }) => `${target!.split(" ")[0]} ${state}`)),
    explain: out(
      candidates.flatMap(({ id, cooldown }) =>
        cooldown ? [`${id.split("/")[0]} ${cooldown.state}`] : [],
      ),
    ),
  };
}
interface Said {
  readonly target?: string;
  readonly state: string;
}

/** Resolves to its time to first token. */
async function asked({ url, key }: Daemon): Promise<number> {
  const began = performance.now();
  const res = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: "any",
      stream: true,
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  if (res.status !== 200) throw new Error(`${res.status} ${await res.text()}`);
  let [text, first] = ["", 0];
  for await (const chunk of res.body!) {
    first ||= performance.now() - began;
    text += Buffer.from(chunk).toString();
  }
  if (!text.includes("[DONE]") || text.includes('"error"')) throw new Error(text.slice(-200));
  return Math.round(first);
}

interface Provider {
  readonly url: string;
  count(): number;
  /** Whether it listens. */
  alive(wanted: boolean): Promise<void>;
}

const LINES = [{ role: "assistant", content: "" }, { content: "Hello" }, { content: " there" }].map(
  (delta) => ({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: null }],
  }),
);
const END = { ...LINES[0], choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const USAGE = {
  ...LINES[0],
  choices: [],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
};
const STREAM =
  [...LINES, END, USAGE].map((one) => `data: ${JSON.stringify(one)}\n\n`).join("") +
  "data: [DONE]\n\n";

async function provider(ill: () => boolean, name: Name): Promise<Provider> {
  let calls = 0;
  const answer = (res: ServerResponse) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(STREAM);
  };
  const server: Server = createServer((req, res) => {
    calls++;
    req.resume().on("end", () => {
      if (!ill() || name === "killed") return void answer(res);
      if (name === "slow") return void setTimeout(() => answer(res), 3 * FIRST_BYTE_MS).unref();
      res.writeHead(429, { "content-type": "application/json", "retry-after": String(LIMITED_S) });
      return void res.end('{"error":{"message":"Slow down.","type":"rate_limit_error"}}');
    });
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    count: () => calls,
    async alive(wanted) {
      if (wanted === server.listening) return;
      if (wanted) return listen(port);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

export const rig: Rig = {
  options: { seconds: 60, rate: 100, seed: Date.now() % 1e6 },
  run: ({ seconds, rate, seed }) =>
    failover({ seconds: Number(seconds), rate: Number(rate), seed: Number(seed) }),
};
