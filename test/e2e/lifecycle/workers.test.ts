// Several processes on one port, as an operator runs them: counts are shared, a change applies to
// all, and open requests of a dead one are not lost.
import { mkdtemp, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LedgerEntry } from "tollgate/plugin";
import { describe, expect, it } from "vitest";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { isAlive } from "../../kit/process/processes.ts";
import { startDaemon, type Daemon, type DaemonOptions } from "../../kit/process/daemon.ts";
import { killUntilExit } from "../../kit/process/program.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

/** Sends non-streaming responses immediately, and streams a word every 50 ms until released. */
async function upstream() {
  let held = true;
  const usage = { prompt_tokens: 1, completion_tokens: 100, total_tokens: 101 };
  const server = createServer((req, res) => {
    let body = "";
    req.on("data", (c: Buffer) => (body += c.toString()));
    req.on("end", () => {
      if (req.method === "GET") return res.end('{"object":"list","data":[{"id":"m"}]}');
      const common = { id: "c1", created: 1, model: "m" };
      if (!(JSON.parse(body) as { stream?: boolean }).stream) {
        const message = { role: "assistant", content: "ok" };
        res.setHeader("content-type", "application/json");
        return res.end(
          JSON.stringify({
            ...common,
            object: "chat.completion",
            choices: [{ index: 0, message, finish_reason: "stop" }],
            usage,
          }),
        );
      }
      const chunk = (more: object) =>
        `data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", ...more })}\n\n`;
      const delta = (delta: object, finish_reason: string | null = null) =>
        chunk({ choices: [{ index: 0, delta, finish_reason }] });
      res.writeHead(200, { "content-type": "text/event-stream" });
      const timer = setInterval(() => {
        if (held) return void res.write(delta({ content: "word " }));
        clearInterval(timer);
        res.end(`${delta({}, "stop")}${chunk({ choices: [], usage })}data: [DONE]\n\n`);
      }, 50);
      res.on("close", () => clearInterval(timer));
    });
  });
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    /** Streams end now. */
    letGo: () => void (held = false),
    hold: () => void (held = true),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const yaml = (base: string, more = "") => `
workers: 2
# A busy machine rejects no request of this test.
overload: { max_queue_wait: 60s }
frontends: [chat-completions]
middleware: [auth, { use: limits, with: { hold: hard } }]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${base}" }
    models: { m: { price: { input: "0", output: "10" } } }
${more}`;

const start = (base: string, more: Partial<DaemonOptions> = {}) =>
  startDaemon({ yaml: yaml(base), ...more });

interface Got {
  status: number;
  generation: number;
  /** The process that responded: an ID starts with its process's own prefix. */
  by: string;
  /** Resolves at the end. Rejects if it is truncated. */
  text: Promise<string>;
}

type Asking = { key?: string; stream?: boolean };

/** Each on its own connection, because otherwise one process would serve all. */
const ask = (gateway: Daemon, of: Asking = {}): Promise<Got> =>
  new Promise((resolve, reject) => {
    const req = request(
      `${gateway.url}/v1/chat/completions`,
      {
        method: "POST",
        agent: false,
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${of.key ?? gateway.key}`,
        },
      },
      (res) => {
        const text = new Promise<string>((done, cut) => {
          let all = "";
          res.on("data", (c: Buffer) => (all += c.toString()));
          res.on("end", () => done(all));
          res.on("error", cut);
        });
        text.catch(() => {});
        resolve({
          status: res.statusCode!,
          generation: Number(res.headers["x-tollgate-generation"]),
          by: String(res.headers["x-request-id"]).slice(0, -8),
          text,
        });
      },
    );
    req.on("error", reject);
    const messages = [{ role: "user", content: "x" }];
    req.end(
      JSON.stringify({ model: "up/m", max_tokens: 100, stream: of.stream ?? false, messages }),
    );
  });

const many = (n: number, gateway: Daemon, of: Asking = {}) =>
  Promise.all(Array.from({ length: n }, () => ask(gateway, of)));

const processes = (got: readonly Got[]) => new Set(got.map(({ by }) => by)).size;
const served = (got: readonly Got[]) => got.filter(({ status }) => status === 200).length;

const statusOf = async (gateway: Daemon) =>
  (await gateway.ask("status")) as unknown as GatewayStatus;
const pidsOf = async (gateway: Daemon) => (await statusOf(gateway)).workers!.map(({ pid }) => pid);

async function keyWith(gateway: Daemon, limits: string[]): Promise<string> {
  const made = await gateway.ask("keys.create", { name: "limited", limits: limits as never });
  return (made as { secret: string }).secret;
}

const entries = async (gateway: Daemon): Promise<LedgerEntry[]> => {
  const all: LedgerEntry[] = [];
  for (let after: string | null = null; ;) {
    const page = (await gateway.ask("ledger.entries", {
      ...(after !== null && { after }),
      limit: 1_000,
    } as never)) as never;
    const { items, next } = page as { items: LedgerEntry[]; next?: string };
    all.push(...items);
    if (next === undefined) return all;
    after = next;
  }
};

/** Visible as soon as it is true. */
async function once<T>(look: () => Promise<T>, so: (seen: T) => boolean): Promise<T> {
  let seen: T;
  await until(async () => so((seen = await look())));
  return seen!;
}

/** The generation after the reloads of a test. */
const LAST = NIGHTLY ? 6 : 4;

describe("workers: 2", () => {
  it("limits, budgets, and the ledger are exact across both, which finish their streams on SIGTERM", async () => {
    await using up = await upstream();
    await using gateway = await start(up.base);
    expect(gateway.log.filter(({ msg }) => msg === "listening")).toHaveLength(1);

    // A hundred tokens cost a tenth of a cent, reserved and then spent.
    const budget = await keyWith(gateway, ["usd=0.05/total"]);
    const paid = await many(500, gateway, { key: budget });
    expect(processes(paid)).toBe(2);
    expect(served(paid)).toBe(50);
    expect(paid.filter(({ status }) => status === 429)).toHaveLength(450);

    const rate = await keyWith(gateway, ["requests=6/minute"]);
    expect(served(await many(60, gateway, { key: rate }))).toBe(6);

    const few = await keyWith(gateway, ["concurrent=5"]);
    const streams = await many(40, gateway, { key: few, stream: true });
    expect(served(streams)).toBe(5);
    up.letGo();
    await Promise.all(streams.map(({ text }) => text));
    expect((await ask(gateway, { key: few })).status).toBe(200);

    const rows = await entries(gateway);
    const settles = rows.filter(({ kind }) => kind === "settle");
    expect(settles).toHaveLength(50 + 6 + 5 + 1);
    expect(new Set(settles.map(({ attempt }) => attempt)).size).toBe(settles.length);
    expect(settles.every(({ state }) => state === "exact")).toBe(true);
    const { code, out } = await runTollgate(gateway, ["ledger", "verify"]);
    expect([code, out]).toEqual([0, expect.any(String)]);

    // On SIGTERM, streams finish, then all processes exit.
    up.hold();
    const last = await many(30, gateway, { stream: true });
    const pids = await pidsOf(gateway);
    // Like a terminal or an init system: every process receives the signal.
    for (const pid of [gateway.pid, ...pids]) process.kill(pid, "SIGTERM");
    await gateway.line(/^shutting down after/);
    expect(isAlive(pids[0]!) && isAlive(pids[1]!)).toBe(true);
    up.letGo();
    for (const { text } of last) expect((await text).trimEnd()).toMatch(/data: \[DONE\]$/);
    expect((await gateway.exit).code).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it("a worker dies in mid-stream, then the primary: their calls are settled, and the others continue", async () => {
    await using up = await upstream();
    await using gateway = await start(up.base);
    const key = await keyWith(gateway, ["concurrent=8"]);
    const streams = await many(8, gateway, { key, stream: true });
    expect([served(streams), processes(streams)]).toEqual([8, 2]);
    expect((await ask(gateway, { key })).status).toBe(429);
    const before = await pidsOf(gateway);
    let cut = 0;
    for (const { text } of streams) text.catch(() => cut++);
    process.kill(before[0]!, "SIGKILL");

    const open = () => entries(gateway).then((all) => all.filter((e) => e.outcome === "recovered"));
    const recovered = await once(open, (found) => found.length > 0 && found.length === cut);
    const lost = streams.filter(({ by }) => by !== streams[0]!.by).length;
    expect([lost, 8 - lost]).toContain(recovered.length);
    for (const entry of recovered) {
      expect(entry).toMatchObject({ kind: "settle", state: "estimated" });
      expect(BigInt(entry.costNano!)).toBeGreaterThan(0n);
    }
    // Their leases are free again.
    expect((await ask(gateway, { key })).status).toBe(200);

    const after = await once(
      () => pidsOf(gateway),
      (pids) => pids.length === 2,
    );
    expect(after).toHaveLength(2);
    expect(after).toContain(before[1]);
    expect(after).not.toContain(before[0]);

    up.letGo();
    const ends = await Promise.allSettled(streams.map(({ text }) => text));
    const whole = ends.filter((end) => end.status === "fulfilled");
    expect(whole).toHaveLength(8 - recovered.length);
    for (const { value } of whole) expect(value.trimEnd()).toMatch(/data: \[DONE\]$/);
    expect(processes(await many(20, gateway))).toBe(2);
    const rows = await entries(gateway);
    const left = rows.filter(({ kind }) => kind === "reserve").length;
    expect(rows.filter(({ kind }) => kind === "settle")).toHaveLength(left);
    expect((await runTollgate(gateway, ["ledger", "verify"])).code).toBe(0);

    // The primary dies: the workers end, and the next start settles all calls.
    up.hold();
    expect(served(await many(6, gateway, { stream: true }))).toBe(6);
    const pids = await pidsOf(gateway);
    gateway.kill("SIGKILL");
    await gateway.exit;
    const gone = async () => pids.filter(isAlive).length;
    await once(gone, (n) => n === 0);
    await using next = await start(up.base, { dir: gateway.dir });
    const line = await next.line((l) => l.msg.startsWith("calls left open by crash"));
    expect(line["recovered"]).toBe(6);
    expect(served(await many(4, next, { key: gateway.key }))).toBe(4);
  });

  it.runIf(NIGHTLY)(
    "a worker exits with an accepted connection: it is replaced, and its client is served",
    async () => {
      await using up = await upstream();
      await using gateway = await start(up.base);
      const before = await pidsOf(gateway);
      // It is blocked, and accepts no connection.
      process.kill(before[0]!, "SIGSTOP");
      let heard = 0;
      const all = Array.from({ length: 6 }, () => ask(gateway).finally(() => heard++));
      await until(() => heard === 5);
      const told = gateway.ask("status");
      process.kill(before[0]!, "SIGKILL");
      expect(served(await Promise.all(all))).toBe(6);
      await gateway.line((l) => l.msg === "worker replaced");
      await told;
      const after = await pidsOf(gateway);
      expect([after.length, after.includes(before[1]!)]).toEqual([2, true]);
      expect(processes(await many(20, gateway))).toBe(2);
    },
  );

  it("a change through one worker applies to all: keys, and a new config", async () => {
    await using up = await upstream();
    await using gateway = await start(up.base);
    const made = (await gateway.ask("keys.create", { name: "short" })) as {
      secret: string;
      key: { id: string };
    };
    const known = await many(40, gateway, { key: made.secret });
    expect([served(known), processes(known)]).toEqual([40, 2]);
    await gateway.ask("keys.revoke", { id: made.key.id });
    const refused = await many(40, gateway, { key: made.secret });
    expect(processes(refused)).toBe(2);
    expect(refused.every(({ status }) => status === 401)).toBe(true);

    let over = false;
    const got: Got[] = [];
    const load = Array.from({ length: 4 }, async () => {
      while (!over) {
        const one = await ask(gateway);
        got.push(one);
        await one.text;
      }
    });
    for (let n = 2; n <= LAST; n++) {
      await gateway.write(yaml(up.base, `log: { slow_request: ${n}s }\n`));
      await gateway.line((l) => l.msg === "reloaded" && l["generation"] === n);
    }
    over = true;
    await Promise.all(load);
    expect(served(got)).toBe(got.length);
    const now = await many(20, gateway);
    expect(processes(now)).toBe(2);
    expect(new Set(now.map(({ generation }) => generation))).toEqual(new Set([LAST]));

    // An invalid file, a change that needs a restart, and a failure in a worker: nothing changes
    // anywhere.
    await gateway.write(yaml(up.base, "modles: {}\n"));
    await gateway.line((l) => l.msg.startsWith("reload rejected: the config has errors"));
    await gateway.write(yaml(up.base).replace("workers: 2", "workers: 3"));
    const line = await gateway.line((l) => l.msg.startsWith("reload rejected: workers"));
    expect(line["restart_keys"]).toEqual(["workers"]);
    await writeFile(`${gateway.dir}/choosy.ts`, CHOOSY);
    await gateway.write(yaml(up.base).replace("auth,", "auth, { use: ./choosy.ts },"));
    await gateway.line((l) => JSON.stringify(l).includes("not in a worker"));
    await gateway.line(
      (l) => l.msg.startsWith("reload rejected") && JSON.stringify(l).includes("choosy"),
    );
    const still = await many(20, gateway);
    expect([served(still), processes(still)]).toEqual([20, 2]);
    expect(new Set(still.map(({ generation }) => generation))).toEqual(new Set([LAST]));

    // A later worker has the running config, not the one in the file.
    const [first] = await pidsOf(gateway);
    process.kill(first!, "SIGKILL");
    await gateway.line((l) => l.msg === "worker replaced");
    const late = await many(20, gateway);
    expect([served(late), processes(late)]).toEqual([20, 2]);
    expect(new Set(late.map(({ generation }) => generation))).toEqual(new Set([LAST]));
  });

  it.runIf(NIGHTLY)("a response of one worker can be referred to at the other", async () => {
    await using gateway = await startDaemon({
      yaml: "workers: 2\nfrontends: [responses]\nproviders:\n  demo: { use: demo }\n",
    });
    const post = async (input: unknown, key = gateway.key) => {
      const res = await fetch(`${gateway.url}/v1/responses`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${key}`,
          connection: "close",
        },
        body: JSON.stringify({ model: "demo/echo", input }),
      });
      const by = String(res.headers.get("x-request-id")).slice(0, -8);
      return { by, status: res.status, said: (await res.json()) as { output: { id: string }[] } };
    };
    const first = await post("Hello");
    const again = [{ role: "user", content: "Hello" }];
    const reference = { type: "item_reference", id: first.said.output[0]!.id };
    const others = await Promise.all(
      Array.from({ length: 6 }, () => post([...again, reference, ...again])),
    );
    expect(others.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(new Set(others.map(({ by }) => by)).size).toBe(2);
    // For no other key, in any process.
    const stranger = await keyWith(gateway, []);
    const strange = await Promise.all(
      Array.from({ length: 4 }, () => post([...again, reference], stranger)),
    );
    expect(strange.map(({ status }) => status)).toEqual(Array(4).fill(400));
  });

  it.runIf(NIGHTLY)(
    "an uncaught error truncates no stream: another worker takes over",
    async () => {
      await using up = await upstream();
      const odd = yaml(up.base).replace("auth,", "auth, { use: ./odd.ts },");
      await using gateway = await startDaemon({ yaml: odd, files: { "odd.ts": ODD } });
      const streams = await many(6, gateway, { stream: true });
      const before = await pidsOf(gateway);
      await writeFile(`${gateway.dir}/throw`, "");
      await ask(gateway);
      await gateway.line((l) => l.msg === "worker replaced");
      up.letGo();
      for (const { text } of streams) expect((await text).trimEnd()).toMatch(/data: \[DONE\]$/);
      const after = await pidsOf(gateway);
      expect(after.filter((pid) => before.includes(pid))).toHaveLength(1);
      const gone = async () => before.filter(isAlive).length;
      await once(gone, (n) => n === 1);
      expect(processes(await many(20, gateway))).toBe(2);
      expect((await entries(gateway)).every(({ outcome }) => outcome !== "recovered")).toBe(true);
    },
  );

  it.runIf(NIGHTLY)(
    "SIGTERM: a client whose connection no worker has accepted is served",
    async () => {
      await using up = await upstream();
      await using gateway = await start(up.base);
      const pids = await pidsOf(gateway);
      // Each blocked process gets one of them. All others wait in the primary.
      for (const pid of pids) process.kill(pid, "SIGSTOP");
      const all = Array.from({ length: 8 }, () =>
        ask(gateway).catch((error: Error) => error.message),
      );
      await turnEventLoop();
      gateway.kill("SIGTERM");
      await gateway.line((l) => l.msg.startsWith("stopping"));
      for (const pid of pids) process.kill(pid, "SIGCONT");
      const heard = await Promise.all(all);
      expect(heard.map((one) => (typeof one === "string" ? one : one.status))).toEqual(
        Array(8).fill(200),
      );
      expect((await gateway.exit).code).toBe(0);
    },
  );

  it.runIf(NIGHTLY)("a second signal aborts, and aborted calls are settled", async () => {
    await using up = await upstream();
    await using gateway = await start(up.base);
    const streams = await many(6, gateway, { stream: true });
    expect(served(streams)).toBe(6);
    gateway.kill("SIGTERM");
    await gateway.line((l) => l.msg.startsWith("shutting down after"));
    expect(gateway.log.find((l) => l.msg.startsWith("shutting down after"))!["inFlight"]).toBe(6);
    expect((await killUntilExit(gateway, "SIGTERM")).code).toBe(1);
    await using next = await start(up.base, { dir: gateway.dir });
    const rows = (await entries(next)).filter(({ kind }) => kind === "settle");
    expect(rows.map(({ state }) => state)).toEqual(Array(6).fill("estimated"));
    expect(next.log.filter((l) => l.msg.startsWith("calls left open by crash"))).toEqual([]);
  });

  it.runIf(NIGHTLY)("a gateway whose control socket responds has its port open", async () => {
    const dir = await mkdtemp(join(tmpdir(), "tollgate-"));
    const file = yaml("http://127.0.0.1:9/v1", "state_dir: ./state\n");
    const heard: GatewayStatus[] = [];
    let up = false;
    const coming = startDaemon({ yaml: file, dir }).finally(() => (up = true));
    await until(async () => {
      const status = await callControl(join(dir, "state"), "status").catch(() => undefined);
      if (status) heard.push(status as unknown as GatewayStatus);
      return up;
    });
    await using gateway = await coming;
    const before = heard.filter(({ urls }) => urls.length === 0).map(({ state }) => state);
    expect([...new Set(before)]).toEqual(["starting"]);
    expect(await gateway.ask("status")).toMatchObject({ state: "ready", url: gateway.url });
  });

  it.runIf(NIGHTLY)("a worker that never starts ends the gateway with an error", async () => {
    await using up = await upstream();
    const sick = yaml(up.base).replace("auth,", "auth, { use: ./sick.ts },");
    const started = startDaemon({ yaml: sick, files: { "sick.ts": SICK, ill: "" } });
    await expect(started).rejects.toThrow(/A worker exited \(exit code 3\)/);

    await using gateway = await startDaemon({ yaml: sick, files: { "sick.ts": SICK } });
    await writeFile(`${gateway.dir}/ill`, "");
    for (const pid of await pidsOf(gateway)) process.kill(pid, "SIGKILL");
    expect((await gateway.exit).code).toBe(1);
    expect(gateway.output()).toContain("Workers exit repeatedly");
  });
});

const plugin = (setup: string, settle = "") => `
import cluster from "node:cluster";
import { existsSync, rmSync } from "node:fs";
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({
  api: 1, name: "odd", summary: "For a test", stability: "beta", sends: "nowhere",
  setup() { ${setup}; return { settle() { ${settle} } }; },
});
`;
const CHOOSY = plugin('if (cluster.isWorker) throw new Error("not in a worker")');
const ODD = plugin(
  "",
  'if (existsSync("throw")) { rmSync("throw"); setTimeout(() => { throw new Error("odd"); }); }',
);
const SICK = plugin('if (cluster.isWorker && existsSync("ill")) process.exit(3)');
