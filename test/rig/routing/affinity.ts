// Prompt caches per credential: how many turns of conversations hit their cache with random and
// with sticky routing, over two workers without communication. Then one credential is in cooldown:
// only its conversations move.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { preloaded, type ChangedSource } from "../mutants/changed-source.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";

const CREDENTIALS = ["a", "b", "c"] as const;
const PICKS = ["weighted", "sticky"] as const;
type Pick = (typeof PICKS)[number];

/** Planted defect of the gateway, which must be found. */
const MUTANTS = {
  // The order is random for each turn.
  drawn: {
    in: "pipeline/routing/routing-rules.ts",
    line: "conversation === undefined ? random :",
    instead: "conversation !== undefined ? random :",
  },
  // Each worker has its own order.
  apart: {
    in: "pipeline/routing/routing-rules.ts",
    line: "`${conversation}\\n",
    instead: "`${process.pid} ${conversation}\\n",
  },
  // Many conversations are at one credential.
  crowded: {
    in: "pipeline/routing/routing-rules.ts",
    line: "${id}\\n${credential}`",
    instead: "${id}\\n${credential.replace('b', 'a')}`",
  },
} as const satisfies Record<string, ChangedSource>;

export interface AffinityOptions {
  readonly conversations: number;
  readonly turns: number;
  readonly seed: number;
  readonly mutant?: keyof typeof MUTANTS;
}

export async function affinity(of: AffinityOptions): Promise<RigResult> {
  const wrong: string[] = [];
  await using up = await caches();
  await using daemon = await startDaemon({
    yaml: yaml(up.url),
    env: preloaded(of.mutant && MUTANTS[of.mutant]),
  });
  const shares: Record<string, string> = {};
  for (const pick of PICKS) {
    await talk(daemon, pick, of);
    const { hits, turns, read, cached } = up.of(pick);
    shares[pick] = percent(hits / turns);
    shares[`${pick}_tokens`] = percent(cached / read);
  }
  // The first turn of each has no cache.
  const best = 1 - 1 / of.turns;
  if (up.of("sticky").hits / up.of("sticky").turns < best)
    wrong.push(`${shares["sticky"]} of the turns found their prompt, and ${percent(best)} could`);
  const homes = up.homes("sticky");
  if ([...homes.values()].some((at) => at.size > 1)) wrong.push("a conversation has moved");
  for (const name of CREDENTIALS) {
    const its = [...homes.values()].filter((at) => at.has(name)).length / homes.size;
    const bound = (4 * Math.sqrt((1 / 3) * (2 / 3))) / Math.sqrt(homes.size);
    if (Math.abs(its - 1 / 3) > bound)
      wrong.push(`${name} has ${percent(its)} of the conversations`);
  }
  const moved = await resting(daemon, up, of, wrong);
  return { wrong, counts: { conversations: of.conversations, ...shares, moved }, seed: of.seed };
}

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

/** One credential is rate-limited: where each conversation is sent then, and afterwards. */
async function resting(
  daemon: Daemon,
  up: Caches,
  of: AffinityOptions,
  wrong: string[],
): Promise<number> {
  const before = up.homes("sticky");
  up.limited = "a";
  await talk(daemon, "sticky", { ...of, turns: 1 }, of.turns);
  const during = up.last("sticky");
  let moved = 0;
  for (const [name, at] of before) {
    const [home] = at;
    if (home === "a") moved++;
    if ((during.get(name) === home) === (home === "a"))
      wrong.push(`${name} was at ${home} and is at ${during.get(name)}`);
  }
  return moved;
}

/** Turn by turn, all conversations in parallel. */
async function talk(
  daemon: Daemon,
  pick: Pick,
  { conversations, turns, seed }: AffinityOptions,
  from = 0,
): Promise<void> {
  const random = createChance(seed);
  for (let turn = from; turn < from + turns; turn++) {
    const order = Array.from({ length: conversations }, (_, i) => i).sort(() => random() - 0.5);
    for (let i = 0; i < order.length; i += 16)
      await Promise.all(order.slice(i, i + 16).map((name) => say(daemon, pick, `c${name}`, turn)));
  }
}

async function say({ url, key }: Daemon, pick: Pick, name: string, turn: number): Promise<void> {
  const messages = [
    { role: "system", content: "You are told of gates. ".repeat(40) },
    { role: "user", content: `I am ${name}.` },
    ...Array.from({ length: turn }, (_, i) => [
      { role: "assistant", content: `Answer ${i}.` },
      { role: "user", content: `Question ${i}.` },
    ]).flat(),
  ];
  const res = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: pick, messages }),
  });
  const text = await res.text();
  if (res.status !== 200) throw new Error(`${res.status} ${text}`);
}

const yaml = (url: string) => `
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: memory
workers: 2
providers:
${PICKS.map(
  (pick) => `  at-${pick}:
    use: openai-compatible
    with: { base_url: "${url}/${pick}/v1" }
    credentials: [${CREDENTIALS.map((name) => `{ name: ${name}, with: { api_key: ${name} } }`).join(", ")}]`,
).join("\n")}
models:
${PICKS.map((pick) => `  ${pick}: { candidates: [at-${pick}/m], pick: ${pick} }`).join("\n")}
`;

interface Caches extends AsyncDisposable {
  readonly url: string;
  /** A credential with a retry time. */
  limited: string | undefined;
  of(pick: Pick): { hits: number; turns: number; read: number; cached: number };
  /** Credential that served each conversation. */
  homes(pick: Pick): Map<string, Set<string>>;
  last(pick: Pick): Map<string, string>;
}

/** Reads the cached prefix of a prompt, and processes the rest. */
async function caches(): Promise<Caches> {
  const none = () => ({
    counts: { hits: 0, turns: 0, read: 0, cached: 0 },
    homes: new Map<string, Set<string>>(),
    last: new Map<string, string>(),
    caches: new Map<string, Set<string>>(),
  });
  const all: Record<Pick, ReturnType<typeof none>> = { weighted: none(), sticky: none() };
  const server = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on("data", (part: Buffer) => void parts.push(part));
    req.on("end", () => {
      if (req.method !== "POST") return void res.writeHead(404).end();
      const of = all[req.url!.split("/")[1] as Pick];
      const credential = String(req.headers.authorization).replace("Bearer ", "");
      if (credential === caught.limited) {
        res.writeHead(429, { "content-type": "application/json", "retry-after": "120" });
        return void res.end('{"error":{"message":"Slow down.","type":"rate_limit_error"}}');
      }
      const { messages } = JSON.parse(Buffer.concat(parts).toString()) as {
        messages: { content: string }[];
      };
      const said = messages.map(({ content }) => content);
      const name = said[1]!;
      const cache = of.caches.get(credential) ?? new Set();
      of.caches.set(credential, cache);
      of.counts.turns++;
      of.counts.read += said.join("").length;
      // The common prefix of two conversations is too short for the cache.
      for (let n = said.length; n > 1; n--)
        if (cache.has(said.slice(0, n).join("|"))) {
          of.counts.cached += said.slice(0, n).join("").length;
          if (n === said.length - 2) of.counts.hits++;
          break;
        }
      cache.add(said.join("|"));
      of.homes.set(name, (of.homes.get(name) ?? new Set()).add(credential));
      of.last.set(name, credential);
      res.writeHead(200, { "content-type": "application/json" });
      res.end(ANSWER);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const caught: Caches = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    limited: undefined,
    of: (pick) => all[pick].counts,
    homes: (pick) => new Map([...all[pick].homes].map(([name, at]) => [name, new Set(at)])),
    last: (pick) => all[pick].last,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return caught;
}

const ANSWER = JSON.stringify({
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
});

export const rig: Rig = {
  options: { conversations: 200, turns: 20, seed: 1 },
  run: ({ conversations, turns, seed }) =>
    affinity({ conversations: Number(conversations), turns: Number(turns), seed: Number(seed) }),
};
