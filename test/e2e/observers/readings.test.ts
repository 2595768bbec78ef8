// Live stats as a plugin reads them: of every process, including requests rejected before any hook.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GatewayStats } from "tollgate/plugin";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/**
 * Read in the primary (a command, a route), and as a middleware in the process that serves the
 * client.
 */
const GAUGES = `
import { defineObserver } from "tollgate/plugin";
export default defineObserver({
  api: 1, name: "gauges", summary: "Reads", sends: "nowhere",
  setup: (_options, ctx) => ({ commands: { now: { summary: "Now", run: () => ctx.stats() } } }),
});
`;
const MIRROR = `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({
  api: 1, name: "mirror", summary: "Reads where clients are answered", sends: "nowhere",
  setup: (_options, ctx) => ({
    routes: [{ listener: "public", allowUnauthenticated: true, method: "GET", path: "/mirror",
      handle: async () => ({ status: 200, body: { pid: process.pid, ...(await ctx.stats()) } }) }],
  }),
});
`;

const raw = (port: number, bytes: string | Buffer) =>
  new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("error", () => {}).on("close", () => resolve());
    socket.resume();
  });

describe.each(NIGHTLY ? [1, 2] : [2])("with %i processes", (workers) => {
  let up: TestUpstream;
  let at: Daemon;
  let yaml: string;
  let release: () => void;
  const held = new Promise<void>((resolve) => (release = resolve));
  beforeAll(async () => {
    const hello = say("Hello");
    up = await startUpstream(scriptedModel(hello));
    up.setRoutes({
      "POST /v1/chat/completions": async (asked) => {
        await held;
        return hello.toResponse(asked);
      },
    });
    yaml = `workers: ${workers}
frontends: [chat-completions]
middleware: [auth, ./mirror.ts]
observers: [./gauges.ts]
providers:
  demo: { use: demo }
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: k } }
`;
    at = await startDaemon({ yaml, files: { "gauges.ts": GAUGES, "mirror.ts": MIRROR } });
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await up?.close();
  });
  const read = async () => (await at.ask("observers.gauges/now")) as unknown as GatewayStats;
  const there = workers > 1 ? workers + 1 : 1;

  it("include open requests and connections of all processes", async () => {
    const asked = Array.from({ length: 8 }, () =>
      fetch(`${at.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${at.key}`,
          connection: "close",
        },
        body: JSON.stringify({ model: "up/model", messages: [{ role: "user", content: "Hi" }] }),
      }).then((res) => res.arrayBuffer()),
    );
    const running = ({ pools }: GatewayStats) =>
      pools.find(({ origin }) => origin === up.url)?.running;
    await until(async () => running(await read()) === 8);
    const now = await read();
    expect(now.inFlight).toBe(8);
    expect(now.inFlightByFrontend).toEqual({ "chat-completions": 8, "middleware.mirror": 0 });
    expect(now.processes).toEqual({ expected: there, responded: there });
    expect(now.ledger).toMatchObject({ ok: true });
    expect(now.memory.rss).toBeGreaterThan(there * 20e6);
    // Requests of an ending generation are still open.
    await at.write(`${yaml}log: { level: debug }\n`);
    await until(async () => (await read()).generation.number === 2);
    expect((await read()).inFlightByFrontend["chat-completions"]).toBe(8);
    release();
    await Promise.all(asked);
    await until(async () => (await read()).inFlight === 0);
  });

  it("count requests rejected before routing by code, in whichever process", async () => {
    const port = Number(new URL(at.url).port);
    const ask = (head: string) => raw(port, `${head}\r\nConnection: close\r\n\r\n`);
    for (let n = 0; n < 6; n++) {
      await ask("GET /nowhere HTTP/1.1\r\nHost: localhost");
      await ask("GET / HTTP/1.1\r\nHost: evil.example");
      await ask("GET /v1/chat/completions HTTP/1.1\r\nHost: localhost");
      await raw(port, "NOT HTTP AT ALL\r\n\r\n");
      await raw(
        port,
        Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
      );
    }
    const pipelined = "GET /mirror HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    await raw(port, pipelined);
    const { rejections } = await read();
    expect(rejections).toMatchObject({
      unknown_path: 6,
      host_unknown: 6,
      method_not_allowed: 6,
      http_malformed: 6,
      tls: 6,
    });
    expect(rejections["too_many_in_flight"]).toBeGreaterThanOrEqual(1);
  });

  it("are the same from a process that serves clients", async () => {
    const pids = new Set<number>();
    let refusals: object = {};
    await until(async () => {
      const res = await fetch(`${at.url}/mirror`, { headers: { connection: "close" } });
      const mirror = (await res.json()) as GatewayStats & { pid: number };
      pids.add(mirror.pid);
      ({ rejections: refusals } = mirror);
      expect(mirror.processes).toEqual({ expected: there, responded: there });
      return pids.size === workers;
    });
    expect(refusals).toEqual((await read()).rejections);
    expect(pids.has(at.pid)).toBe(workers === 1);
  });

  it("keep the last report of an unresponsive process, and the counts of an exited one", async () => {
    if (workers === 1) return;
    const before = await read();
    const { workers: all } = (await at.ask("status")) as unknown as { workers: { pid: number }[] };
    const [{ pid }] = all as [{ pid: number }];
    process.kill(pid, "SIGSTOP");
    const late = await read();
    expect(late.processes).toEqual({ expected: there, responded: there - 1 });
    expect(late.rejections).toEqual(before.rejections);
    expect(late.memory.rss).toBeGreaterThan(there * 20e6);
    process.kill(pid, "SIGKILL");
    await at.line(({ msg }) => msg === "worker replaced");
    const after = await read();
    expect(after.processes).toEqual({ expected: there, responded: there });
    expect(after.rejections).toEqual(before.rejections);
  });

  it("are shown by the command line", async () => {
    const { code, out } = await runTollgate(at, ["stats"]);
    expect(code).toBe(0);
    expect(out).toMatch(/in flight +0/);
    expect(out).toMatch(/rejected +tls: 6/);
  });
});
