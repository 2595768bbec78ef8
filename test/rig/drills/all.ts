// The drills, each with its page of the runbook.
import { spawn, spawnSync } from "node:child_process";
import { once as event } from "node:events";
import { appendFileSync, writeFileSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { hasPostgres, postgresStoreYaml, startPostgres } from "../../kit/database/postgres.ts";
import { root } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";
import { authority } from "../faults/certificates.ts";
import { once, only, stage, wrong, type Stage } from "./stage.ts";

export interface Drill {
  /** A page of docs/runbook. */
  readonly page: string;
  /** Undefined if this machine cannot run it. */
  run(): Promise<readonly string[] | undefined>;
}

const DEMO = "providers: { demo: { use: demo } }\n";

const inState = (at: Stage, state: string) =>
  until(
    async () => (await at.status()).state === state,
    () => `the state ${state}`,
  );

/** Every way in which the gateway reports its health. */
async function agreed(at: Stage, state: "ready" | "ledger_unavailable") {
  const up = state === "ready";
  const readings = (await at.gateway.ask("stats")) as { state: string; ledger: { ok: boolean } };
  await at.metric("tollgate_ready", Number(up));
  await at.metric("tollgate_ledger_up", Number(up));
  return {
    [`every /readyz: ${state}`]: only(await at.readiness(), up ? "200 ready" : `503 ${state}`),
    [`status: ${state}`]: (await at.status()).state === state,
    [`readings: ${state}`]: readings.state === state && readings.ledger.ok === up,
  };
}

async function outage(at: Stage, begin: () => unknown, end: () => unknown) {
  await inState(at, "ready");
  const before = await agreed(at, "ready");
  await begin();
  await until(
    async () => (await at.ask("demo/echo")) === 503,
    () => "a refused call",
  );
  await inState(at, "ledger_unavailable");
  const during = await agreed(at, "ledger_unavailable");
  const down = await at.alert("ledger.down");
  await end();
  await inState(at, "ready");
  const after = await agreed(at, "ready");
  await at.alert("ledger.recovered");
  return wrong({
    ...before,
    ...during,
    ...after,
    "a call is served again": (await at.ask("demo/echo")) === 200,
    "ledger.down once": once(at.heard, "ledger.down"),
    "ledger.recovered once": once(at.heard, "ledger.recovered"),
    "the alert names the page": down.runbook === "runbook/ledger-unavailable.md",
  });
}

async function database() {
  if (!hasPostgres()) return undefined;
  await using postgres = await startPostgres();
  const store = postgresStoreYaml(await postgres.database());
  await using at = await stage(`store: ${store}\n${DEMO}`);
  // This function ends the gateway.
  return await outage(
    at,
    () => postgres.kill(),
    () => postgres.start(),
  );
}

async function restart() {
  await using at = await stage(DEMO);
  const [worker] = (await at.status()).workers!;
  process.kill(worker!.pid, "SIGKILL");
  await until(
    async () => {
      const { workers = [] } = await at.status();
      return workers.length === 2 && workers.every(({ pid }) => pid !== worker!.pid);
    },
    () => "another worker",
  );
  await at.metric("tollgate_worker_exits_total", 1);
  const code = await at.gateway.stop();
  return wrong({ "one SIGTERM, exit code 0": code === 0 });
}

async function diskFull() {
  const disk = await mkdtemp(join(tmpdir(), "tollgate-drill-"));
  if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]).status !== 0)
    return void (await rm(disk, { recursive: true }));
  const junk = join(disk, "junk");
  const fill = () => {
    writeFileSync(junk, "");
    try {
      for (;;) appendFileSync(junk, Buffer.alloc(4_096));
    } catch {
      // The last byte has arrived.
    }
  };
  try {
    const file = join(disk, "ledger.db");
    const store = `store: { use: sqlite, with: { file: "${file}", ballast_mb: 1 } }\n`;
    await using at = await stage(store + DEMO);
    return await outage(at, fill, () => rm(junk));
  } finally {
    spawnSync("umount", ["-l", disk]);
    await rm(disk, { recursive: true, force: true });
  }
}

async function certificate() {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-drill-"));
  const { root: ca, issue } = authority();
  const write = async (until: string) => {
    const { cert, key } = issue({ name: "localhost", until });
    await writeFile(join(dir, "key.pem"), key);
    await writeFile(join(dir, "cert.pem"), cert);
  };
  const shown = (port: number) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ca });
      socket.once("error", reject);
      socket.once("secureConnect", () => {
        resolve(socket.getPeerX509Certificate()!.validTo);
        socket.destroy();
      });
    });
  try {
    await write("300101000000Z");
    const listen = `host: 127.0.0.1, port: 0, tls: { cert: "${dir}/cert.pem", key: "${dir}/key.pem" }`;
    await using at = await stage(DEMO, { listen });
    const port = Number(new URL(at.gateway.url).port);
    const name = "tollgate_certificate_expiry_timestamp_seconds";
    await at.metric(name, Date.parse("2030-01-01") / 1_000);
    let end = await shown(port);
    const first = end.includes("2030");
    await write("350101000000Z");
    await until(
      async () => (end = await shown(port)).includes("2035"),
      () => `the new certificate; the last one ended ${end}`,
    );
    return wrong({ "the first one is shown before": first });
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Sends its first byte never, or immediately. */
async function provider(isSlow: boolean) {
  const server = createServer((req, res) => {
    req.resume();
    if (isSlow) return;
    const message = { role: "assistant", content: "Hello" };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    res.setHeader("content-type", "application/json");
    res.end(
      JSON.stringify({ id: "c1", object: "chat.completion", created: 1, model: "m", choices }),
    );
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

async function slowProvider() {
  const [slow, quick] = [await provider(true), await provider(false)];
  try {
    const mount = (url: string) =>
      `{ use: openai-compatible, with: { base_url: "${url}", api_key: k } }`;
    await using at = await stage(
      `timeouts: { first_byte: 300ms }\nproviders: { slow: ${mount(slow.url)}, quick: ${mount(quick.url)} }\n` +
        "models: { both: [slow/m, quick/m] }\n",
    );
    const status = await at.ask("both");
    await at.metric("tollgate_fallbacks_total", 1);
    const line = await at.gateway.line(/succeeded after fallback/);
    return wrong({
      "another candidate answers": status === 200,
      "the log says from where to where": line["from"] === "slow/m" && line["to"] === "quick/m",
    });
  } finally {
    for (const { server } of [slow, quick]) {
      server.closeAllConnections();
      server.close();
    }
  }
}

async function runawayKey() {
  await using at = await stage(DEMO);
  const { secret } = (await at.gateway.ask("keys.create", {
    name: "runaway",
    limits: ["requests=5/day"],
  })) as { secret: string };
  const statuses: number[] = [];
  for (let round = 0; round < 20; round++)
    statuses.push(
      ...(await Promise.all(Array.from({ length: 20 }, () => at.ask("demo/echo", secret)))),
    );
  const refused = await at.alert("key.rejected");
  const { items } = (await at.gateway.ask("audit.list")) as unknown as {
    items: readonly { command: string; target?: string }[];
  };
  const lines = at.gateway.log.filter(({ msg }) => msg === "request refused").length;
  return wrong({
    "five are served": statuses.filter((status) => status === 200).length === 5,
    "all others are refused": statuses.filter((status) => status === 429).length === 395,
    // One line per worker. The totals follow a minute later.
    "a line for each process": lines <= 2 || lines,
    "key.rejected once": once(at.heard, "key.rejected"),
    "the alert names the page": refused.runbook === "runbook/runaway-key.md",
    "the audit log names the key": items.some(
      ({ command, target }) => command === "keys.create" && target !== undefined,
    ),
  });
}

async function badReload() {
  await using at = await stage(DEMO);
  await at.gateway.write("providers: { demo: { uze: demo } }\n");
  const failed = await at.alert("reload.failed");
  await at.gateway.ask("reload");
  await at.metric("tollgate_config_reload_success", 0);
  const { items } = (await at.gateway.ask("audit.list")) as unknown as {
    items: readonly { command: string; outcome: string; code?: string }[];
  };
  const audited = items.find(({ command }) => command === "reload");
  const served = await at.ask("demo/echo");
  await at.gateway.write(DEMO);
  await at.alert("reload.recovered");
  await at.metric("tollgate_config_reload_success", 1);
  return wrong({
    "the config before stays in use": served === 200,
    "reload.failed once": once(at.heard, "reload.failed"),
    "it has a reason": /gateway\.yaml:\d+:\d+ .*uze/.test(String(failed.data["reason"])),
    "the alert names the page": failed.runbook === "runbook/reload-refused.md",
    "the audit log says that it failed":
      audited?.outcome === "failed" && audited.code === "refused",
  });
}

/** A separate terminal, by util-linux. Its output goes to a file. */
async function terminalGone() {
  if (spawnSync("script", ["--version"]).status !== 0) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "tollgate-drill-"));
  const serve = [
    join(root, "node_modules/.bin/node"),
    "--conditions=tollgate-source",
    join(root, "src/cli/bin.ts"),
    "serve",
    "-c",
    join(dir, "gateway.yaml"),
    "--port",
    "0",
  ].join(" ");
  await writeFile(
    join(dir, "gateway.yaml"),
    `shutdown: { announce: 0s, timeout: 2s }\nstate_dir: ./state\n${DEMO}`,
  );
  await using output = await open(join(dir, "output"), "w");
  const terminal = spawn("script", ["-qfec", serve, "/dev/null"], {
    cwd: dir,
    stdio: ["pipe", output.fd, output.fd],
  });
  // It may close by itself, as soon as the first gateway has ended.
  const gone = event(terminal, "close");
  const state = join(dir, "state");
  const status = async () =>
    (await callControl(state, "status").catch(() => undefined)) as unknown as
      | GatewayStatus
      | undefined;
  const ready = async () => (await status())?.state === "ready";
  const lives = (pid: number) => spawnSync("kill", ["-0", String(pid)]).status === 0;
  let last = 0;
  try {
    await until(ready, () => "a gateway in a terminal");
    const first = (await status())!.pid;
    process.kill(first, "SIGUSR2");
    await until(
      async () => ((await status())?.pid ?? first) !== first && (await ready()),
      () => "its successor",
    );
    last = (await status())!.pid;
    await until(
      () => !lives(first),
      () => "the end of the first",
    );
    const said = await readFile(join(dir, "output"), "utf8");
    terminal.kill("SIGKILL");
    await gone;
    const served = await ready();
    process.kill(last, "SIGTERM");
    await until(
      () => !lives(last),
      () => "the end by one SIGTERM",
    );
    return wrong({
      "the successor outlives the terminal": served,
      "its banner names its pid": said.includes(`To stop: kill ${last}.`),
    });
  } finally {
    if (last !== 0 && lives(last)) process.kill(last, "SIGKILL");
    await rm(dir, { recursive: true, force: true });
  }
}

export const DRILLS: Readonly<Record<string, Drill>> = {
  database: { page: "ledger-unavailable", run: database },
  restart: { page: "restart", run: restart },
  "disk-full": { page: "disk-full", run: diskFull },
  certificate: { page: "certificate", run: certificate },
  "slow-provider": { page: "slow-provider", run: slowProvider },
  "runaway-key": { page: "runaway-key", run: runawayKey },
  "bad-reload": { page: "reload-refused", run: badReload },
  "terminal-gone": { page: "terminal-gone", run: terminalGone },
};
