// The access log of a real gateway: a line for each request, and the ledger's sums, with two
// processes, while the file is renamed and reopened, and with clients that forge content.
import { spawn } from "node:child_process";
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { programArgs, root } from "../../kit/process/program.ts";
import { until } from "../../kit/wait.ts";

const YAML = `workers: 2
frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-team] } }]
observers:
  - { use: access-log, with: { file: access.log } }
  - use: access-log
    with: { format: logfmt, file: short.log, client_address: none, sample: { ok: 0.2 }, fields: [id, status, outcome, client_address, labels] }
providers: { demo: { use: demo } }
`;

let at: Daemon;
beforeAll(async () => void (at = await startDaemon({ yaml: YAML })));
afterAll(() => at?.[Symbol.asyncDispose]());

type Said = Record<string, unknown> & { id: string };
const all = (file: string): string[] =>
  readdirSync(at.dir)
    .filter((name) => name.startsWith(file))
    .flatMap((name) => readFileSync(join(at.dir, name), "utf8").split("\n").slice(0, -1));
const said = (): Said[] => all("access.log").map((line) => JSON.parse(line) as Said);

/** Resolves to the status. A header may be one that `fetch` would not send. */
function ask(headers: Record<string, string> = {}, model = "demo/echo", key = at.key) {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello." }] });
  return new Promise<number>((resolve, reject) => {
    const sent = { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers };
    const req = request(`${at.url}/v1/chat/completions`, { method: "POST", headers: sent }, (res) =>
      res.resume().once("end", () => resolve(res.statusCode!)),
    );
    req.once("error", reject).end(body);
  });
}

describe("the access log", () => {
  const ROUNDS = 6;
  const EACH = 25;

  it("has a line for each request while its file is renamed, and its sums equal the ledger", async () => {
    const path = join(at.dir, "access.log");
    // The first line creates the file.
    await ask({ "x-team": "web" });
    await until(() => said().length === 1);
    let asked = 1;
    for (let round = 0; round < ROUNDS; round++) {
      const under = [
        ...Array.from({ length: EACH }, () => ask({ "x-team": "web" })),
        ask({}, "nowhere/at-all"),
        ask({}, "demo/echo", "tg_nobody"),
      ];
      asked += under.length;
      // One is finished, and others are open.
      await Promise.race(under);
      renameSync(path, `${path}.${round}`);
      if (round % 2 === 0) at.kill("SIGHUP");
      else await at.ask("reload");
      await Promise.all(under);
    }
    await until(
      () => said().length >= asked,
      () => `${said().length} of ${asked}`,
    );
    const lines = said();
    expect(lines).toHaveLength(asked);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(asked);
    const ended = Map.groupBy(lines, (line) => `${line["status"]} ${line["outcome"]}`);
    expect(Object.fromEntries([...ended].map(([how, these]) => [how, these.length]))).toEqual({
      "200 ok": ROUNDS * EACH + 1,
      "404 client_error": ROUNDS,
      "401 refused": ROUNDS,
    });
    expect(new Set(lines.map((line) => line["worker"]))).toEqual(new Set([1, 2]));
    const { total } = (await at.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: { calls: number; usage: { input: number; output: number } };
    };
    const sum = (name: string) =>
      lines.reduce((so, line) => so + ((line[name] as number | undefined) ?? 0), 0);
    expect([sum("attempts"), sum("input"), sum("output")]).toEqual([
      total.calls,
      total.usage.input,
      total.usage.output,
    ]);
    expect(lines.find((line) => line["status"] === 200)).toMatchObject({
      route: "/v1/chat/completions",
      model: "demo/echo",
      served_model: "demo/echo",
      labels: { "x-team": "web" },
      client_address: "127.0.0.0/24",
      bill_state: "exact",
    });
  });

  it("keeps all failed requests and a sample of the others, with the sample rate", async () => {
    const short = () => all("short.log");
    await until(() => short().filter((line) => !line.includes("outcome=ok")).length === 2 * ROUNDS);
    const ok = short().filter((line) => line.includes("outcome=ok"));
    expect(ok.length).toBeGreaterThan(5);
    expect(ok.length).toBeLessThan((ROUNDS * EACH) / 2);
    for (const line of short()) {
      expect(line).toMatch(/^id=\w+ status=\d+ outcome=\w+( label\.x-team=web)?( rate=0\.2)?$/);
      expect(line.endsWith(" rate=0.2")).toBe(line.includes("outcome=ok"));
    }
  });

  it("writes one line per request, whatever the client sends", async () => {
    const known = new Set(said().map(({ id }) => id));
    const news = () => said().filter(({ id }) => !known.has(id));
    const forged = '{"forged":1}';
    await ask({ "x-team": `web\t"${forged}\u0085${forged}`, "x-request-id": `a"${forged}` });
    await ask({ "x-request-id": "mine-7" }, `demo/echo\n${forged}`);
    await ask({ "x-team": "x".repeat(300) }, "m".repeat(5_000));
    // Requests rejected before routing have lines too.
    await fetch(`${at.url}/v1/nowhere`);
    await until(() => news().length === 4);
    expect(news().find((line) => line["error_code"] === "unknown_path")).toMatchObject({
      status: 404,
      outcome: "client_error",
      method: "GET",
    });
    const lines = news();
    expect(lines.some((line) => "forged" in line)).toBe(false);
    expect(lines.map((line) => line["client_id"])).toContain("mine-7");
    for (const { model, labels } of lines) {
      expect(String(model).length).toBeLessThanOrEqual(256);
      for (const value of Object.values(labels ?? {})) expect(value.length).toBeLessThanOrEqual(64);
    }
    expect(await at.ask("observers.access-log/counts")).toMatchObject({
      written: known.size + 4,
      lost: 0,
    });
  });
});

it("loses lines but no requests if the disk is full", async () => {
  await using full = await startDaemon({
    yaml: `frontends: [chat-completions]
observers: [{ use: access-log, with: { file: /dev/full } }]
providers: { demo: { use: demo } }
`,
  });
  const asked = Array.from({ length: 20 }, () =>
    fetch(`${full.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${full.key}` },
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi." }] }),
    }).then(async (res) => (await res.arrayBuffer(), res.status)),
  );
  expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
  const counts = () =>
    full.ask("observers.access-log/counts") as unknown as Promise<{ lost: number }>;
  await until(async () => (await counts()).lost === 20);
  const complains = ({ msg }: { msg: string }) => msg.startsWith("access log not writable");
  await full.line(complains);
  const complaints = full.log.filter(complains);
  expect(complaints).toMatchObject([{ file: "/dev/full", err: { code: "ENOSPC" } }]);
});

it("each line of the log and of the access log has its systemd priority if standard output is the journal", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-journal-"));
  const file = join(dir, "journal");
  const journal = openSync(file, "a");
  const { dev, ino } = fstatSync(journal, { bigint: true });
  writeFileSync(
    join(dir, "gateway.yaml"),
    "frontends: [chat-completions]\nobservers: [access-log]\nproviders: { demo: { use: demo } }\n",
  );
  const args = [...programArgs(), "serve", "--port", "0"];
  const child = spawn(join(root, "node_modules/.bin/node"), args, {
    cwd: dir,
    stdio: ["ignore", journal, "ignore"],
    env: { PATH: process.env["PATH"], HOME: dir, JOURNAL_STREAM: `${dev}:${ino}` },
  });
  const lines = () => readFileSync(file, "utf8").split("\n").slice(0, -1);
  const saying = (what: string) => lines().find((line) => line.includes(what));
  try {
    await until(() => saying('"msg":"listening"') !== undefined);
    const { url } = JSON.parse(saying('"msg":"listening"')!.slice(3)) as { url: string };
    const body = JSON.stringify({
      model: "demo/echo",
      messages: [{ role: "user", content: "Hi." }],
    });
    for (const key of [readFileSync(join(dir, ".tollgate/first-key"), "utf8").trim(), "tg_nobody"])
      await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body,
      }).then((res) => res.arrayBuffer());
    await until(() => saying('"outcome":"ok"') !== undefined && lines().length >= 5);
    const levels = { info: "<6>", warn: "<4>", ok: "<6>", refused: "<4>" } as const;
    for (const line of lines()) {
      const { level, outcome } = JSON.parse(line.slice(3)) as { level?: string; outcome?: string };
      expect(line.slice(0, 3)).toBe(levels[(level ?? outcome) as keyof typeof levels]);
    }
  } finally {
    child.kill("SIGKILL");
    closeSync(journal);
    rmSync(dir, { recursive: true, force: true });
  }
});
