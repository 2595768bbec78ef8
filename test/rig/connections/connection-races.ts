// Idle connections that are closed at the moment of their reuse. Upstreams close them at about the
// age at which the next request arrives. The gateway closes its own, and clients reuse them at the
// last allowed moment. No client sees an error, and no request is answered twice upstream.
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

/** Age at which an upstream closes an idle connection. */
const AGE_MS = 40;
const AROUND_MS = 5;
/**
 * One in this many requests on a reused connection fails, because it was in transit when the
 * upstream closed.
 */
const CROSS_EVERY = 50;
/** Number of clients that repeat at the same time. */
const AT_ONCE = 0.5;
/**
 * On a busy machine, more of them collide than a gateway may retry. Beyond this share, it may
 * report an error.
 */
const OFTEN = 0.05;
/**
 * A gateway retries at most a tenth of the successful requests, so this many must succeed before
 * the first connection may be closed.
 */
const BEFORE = 150;
/** The gateway's keep-alive header for its clients. */
const TOLD = /timeout=(\d+)/;

export interface RacesOptions {
  readonly seed: number;
  readonly requests: number;
  readonly clients: number;
  /** Clients that wait for the maximum time. 0: none, because it takes a minute. */
  readonly waiting: number;
  /** Planted defects: a gateway without retries, or an upstream that answers a request twice. */
  readonly mutant?: "never-again" | "twice";
}

interface RacingUpstream extends AsyncDisposable {
  readonly url: string;
  /** Number of responses to each request, by its tag. */
  readonly answered: ReadonlyMap<string, number>;
  /** Connections that were closed with a request in transit, by chance. */
  readonly raced: () => number;
  /** Connections that upstream closed at that moment, so that some exist on any machine. */
  readonly crossed: () => number;
}

const ANSWER = JSON.stringify({
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
});
const WHOLE = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`;

/** Writes to the raw socket, so that it closes at the chosen time without an earlier notice. */
async function racing(chanced: Chance): Promise<RacingUpstream> {
  const answered = new Map<string, number>();
  let [raced, crossed, again] = [0, 0, 0];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    let text = "";
    let timer: NodeJS.Timeout | undefined;
    let closed = false;
    let used = false;
    socket.on("data", (part: Buffer) => {
      if (closed) return void raced++;
      clearTimeout(timer);
      if (used && text === "" && ++again > BEFORE && again % CROSS_EVERY === 1) {
        crossed++;
        closed = true;
        return void socket.resetAndDestroy();
      }
      text += part.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || text.length < head + 4 + length) return;
      const tag = /tag=(\w+)/.exec(text)?.[1];
      text = "";
      used = true;
      if (tag) answered.set(tag, (answered.get(tag) ?? 0) + 1);
      socket.write(WHOLE);
      timer = setTimeout(
        () => {
          closed = true;
          if (chanced.often(0.5)) socket.destroy();
          else socket.end();
        },
        AGE_MS - AROUND_MS + chanced() * 2 * AROUND_MS,
      );
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered,
    raced: () => raced,
    crossed: () => crossed,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((over) => server.close(over));
    },
  };
}

const yaml = (url: string, { mutant }: RacesOptions) => `
frontends: [chat-completions]
middleware: [auth]
store: memory
${mutant === "never-again" ? "retries: { per_target: 1, total: 1 }" : ""}
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, list_models: false }, models: { m: { price: { input: 1, output: 1 } } } }
`;

const bodyOf = (tag: string): string =>
  JSON.stringify({ model: "up/m", messages: [{ role: "user", content: `tag=${tag}` }] });

function ask({ url, key }: Daemon, tag: string, agent: Agent): Promise<number> {
  const body = bodyOf(tag);
  return new Promise((resolve) => {
    const req = request(
      `${url}/v1/chat/completions`,
      {
        agent,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": body.length,
          authorization: `Bearer ${key}`,
        },
      },
      (res) => {
        res.resume();
        res.on("end", () => resolve(res.statusCode!));
        res.on("error", () => resolve(0));
      },
    );
    req.on("error", () => resolve(0));
    req.end(body);
  });
}

/** A client that reuses its connection at the last moment that the gateway allows. */
async function late(at: Daemon, n: number, chanced: Chance): Promise<string | undefined> {
  const { port } = new URL(at.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  let said = "";
  socket.setEncoding("latin1").on("data", (part: string) => (said += part));
  const send = (tag: string) => {
    const body = bodyOf(tag);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
        `authorization: Bearer ${at.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  };
  const answers = async (count: number): Promise<boolean> => {
    for (const end = performance.now() + 20_000; performance.now() < end; await sleep(2)) {
      if (said.split("HTTP/1.1 200").length - 1 >= count && said.endsWith("}")) return true;
      if (socket.destroyed || socket.readableEnded) return false;
    }
    return false;
  };
  try {
    send(`l${n}a`);
    if (!(await answers(1))) return `late client ${n} was not served at all`;
    const seconds = Number(TOLD.exec(said)?.[1] ?? 0);
    if (seconds === 0) return `late client ${n} is not told how long its connection is kept`;
    await sleep(seconds * 1_000 - AROUND_MS + chanced() * 2 * AROUND_MS);
    send(`l${n}b`);
    return (await answers(2))
      ? undefined
      : `late client ${n}: closed within the ${seconds} s it was told`;
  } finally {
    socket.destroy();
  }
}

export async function races(of: RacesOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using up = await racing(chanced);
  await using at = await startDaemon({ yaml: yaml(up.url, of) });
  const agent = new Agent({ keepAlive: true });
  for (let n = 0; n < BEFORE; n++) await ask(at, `b${n}`, agent);
  const lates = Array.from({ length: of.waiting }, (_, n) => late(at, n, chanced));
  let next = 0;
  const statuses = new Map<number, number>();
  const lane = async () => {
    while (next < of.requests) {
      const status = await ask(at, `r${next++}`, agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (!chanced.often(AT_ONCE)) await sleep(AGE_MS - AROUND_MS + chanced() * 2 * AROUND_MS);
    }
  };
  await Promise.all(Array.from({ length: of.clients }, lane));
  const beyond = up.raced() + up.crossed() > OFTEN * of.requests;
  for (const [status, count] of statuses)
    if (status !== 200 && !(status === 503 && beyond && !of.mutant))
      wrong.push(`${count} clients were told ${status}`);
  for (const one of await Promise.all(lates)) if (one !== undefined) wrong.push(one);
  agent.destroy();
  const answered = new Map(up.answered);
  if (of.mutant === "twice") answered.set("r0", 2);
  for (const [tag, times] of answered)
    if (times > 1) wrong.push(`${tag} was answered ${times} times upstream`);
  const { total } = (await at.ask("ledger.totals", {})) as unknown as { total: { calls: number } };
  return {
    wrong,
    counts: {
      requests: of.requests,
      raced: up.raced(),
      crossed: up.crossed(),
      calls: total.calls - BEFORE,
      late: of.waiting,
    },
    seed: of.seed,
  };
}

export const rig: Rig = {
  options: { requests: 20_000, clients: 32, waiting: 100, seed: Date.now() % 1e6 },
  run: ({ requests, clients, waiting, seed }) =>
    races({
      seed: Number(seed),
      requests: Number(requests),
      clients: Number(clients),
      waiting: Number(waiting),
    }),
};
