// The targets, each as it would be run: the gateway, the three bare proxies, the mock without a
// gateway, and any URL. Peers are in peers.ts.
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, ROOT, run, serving } from "./process.ts";

export interface Target {
  readonly name: string;
  /** Undefined for a process that is not ours. */
  readonly pid: number | undefined;
  /** Its database, if that is a separate process. */
  readonly database?: number;
  readonly port: number;
  readonly path: string;
  readonly headers: Record<string, string>;
  /** Prefix of a model's name. */
  readonly prefix: string;
  /** Lanes that it supports: chat only, and few enough streams for a short round. */
  readonly chatOnly?: boolean;
  readonly mostStreams?: number;
  /** What it checks of a request, and what it records, for the table. Default: nothing. */
  readonly checks?: string;
  readonly records?: string;
  stop(): Promise<void>;
}

export const CHAT = "/v1/chat/completions";

export async function bare(way: "agent" | "dispatch" | "net", mock: number): Promise<Target> {
  const [file, args] = way === "net" ? ["bare-net.ts", []] : ["bare.ts", [way]];
  const { child, pid, port } = await serving(file, [...args, String(mock)], 0);
  return { name: way, pid, port, path: CHAT, headers: {}, prefix: "", stop: () => ended(child) };
}

/** The mock alone. The gateway added everything above its values. */
export const direct = (mock: { port: number; pid: number }): Target => ({
  name: "direct",
  pid: mock.pid,
  port: mock.port,
  path: CHAT,
  headers: {},
  prefix: "",
  stop: async () => {},
});

export interface GateOptions {
  name?: string;
  durability?: string;
  /** Replaces sqlite, in YAML's flow style, with the first process of its database. */
  store?: string;
  database?: number;
  workers?: number;
  /** An additional middleware, in YAML's flow style, and files next to the config. */
  middleware?: string;
  files?: Readonly<Record<string, string>>;
  /** Whether the models of the lanes have a price, which budgets require. */
  priced?: boolean;
  /** Entries under `scopes:`, in YAML's flow style. */
  scopes?: string;
  /** Entries under `observers:`, in YAML's flow style. */
  observers?: string;
  /** An additional frontend, in YAML's flow style. */
  frontend?: string;
  /** Additional models of routes in the file. */
  models?: number;
  dist?: boolean;
  /** Uses an existing state directory. */
  dir?: string;
  core?: 0 | undefined;
  /** Another checkout of this program, with its dependencies. Default: this one. */
  root?: string;
  /** Opens its inspector. */
  inspect?: boolean;
}

/** Long enough to be accepted, and not a secret. */
const SCRAPER = "bench-scraper-0123456789abcdef";
const SCRAPE_MS = 5_000;

/** What a gateway of this project records of each request, by durability. */
const RECORDS: Readonly<Record<string, string>> = {
  power: "a row before the call and one before the last byte, both flushed to disk",
  process: "a row before the call and one before the last byte, both written",
  relaxed: "two rows, written later",
  other: "a row before the call and one before the last byte, in its store",
};

const PRICES = `, models: { ${["bench-s2048", "bench-e200"].map((id) => `"${id}": { price: { input: 1, output: 2 } }`).join(", ")} }`;

const yaml = (mock: number, of: GateOptions) => `
listen: { host: 127.0.0.1, port: 0 }
${of.workers === undefined ? "" : `workers: ${of.workers}\n`}log: { level: warn }
store: ${of.store ?? `{ use: sqlite, with: { durability: ${of.durability ?? "power"} } }`}
frontends: [chat-completions, messages, responses, models${of.frontend === undefined ? "" : `, ${of.frontend}`}]
middleware: [auth, zdr, limits, usage${of.middleware === undefined ? "" : `, ${of.middleware}`}]
${of.scopes === undefined ? "" : `scopes: ${of.scopes}\n`}${of.observers === undefined ? "" : `observers: ${of.observers}\nadmin: { port: 0, tokens: { scraper: { role: metrics, token: ${SCRAPER} } } }\n`}providers:
  up: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${mock}/v1", list_models: false }${of.priced ? PRICES : ""} }
  re: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${mock}/v1", list_models: false, responses: true } }
  an: { use: anthropic-compatible, with: { base_url: "http://127.0.0.1:${mock}/v1" } }
models:
  "plain-*": ["up/*"]
${Array.from({ length: of.models ?? 0 }, (_, i) => `  m${i}: ["up/bench-${i}"]`).join("\n")}
`;

export interface Gate extends Target {
  readonly dir: string;
  /** Address of its inspector, if opened. */
  readonly inspector: string | undefined;
}

export async function tollgate(mock: number, of: GateOptions = {}): Promise<Gate> {
  const dir = of.dir ?? (await mkdtemp(join(tmpdir(), "tollgate-bench-")));
  const file = join(dir, "gateway.yaml");
  writeFileSync(file, yaml(mock, of).replace("level: warn", "level: info"));
  for (const [name, text] of Object.entries(of.files ?? {})) writeFileSync(join(dir, name), text);
  const root = of.root ?? ROOT;
  const entry = of.dist
    ? [join(root, "dist/src/cli/bin.js")]
    : ["--conditions=tollgate-source", join(root, "src/cli/bin.ts")];
  if (of.inspect) entry.unshift("--inspect=127.0.0.1:0");
  const child = run([...entry, "serve", "-c", file, "--no-watch"], "core" in of ? of.core : 0, {
    cwd: dir,
    ipc: false,
    env: { PATH: process.env["PATH"], HOME: dir },
  });
  let output = "";
  const url = await new Promise<string>((resolve, reject) => {
    const read = (data: Buffer) => {
      output = (output + data.toString()).slice(-20_000);
      const found = /"url":"([^"]+)"/.exec(output)?.[1];
      if (found !== undefined && output.includes('"listening"')) resolve(found);
    };
    child.stdout!.on("data", read);
    child.stderr!.on("data", read);
    child.once("exit", (code) => reject(new Error(`tollgate ended with ${code}:\n${output}`)));
  });
  const scraping = of.observers === undefined ? undefined : scraped(output);
  const key = readFileSync(join(dir, ".tollgate/first-key"), "utf8").trim();
  return {
    name: of.name ?? `tollgate ${of.durability ?? "power"}`,
    checks: "keys, privacy, limits",
    records: RECORDS[of.store === undefined ? (of.durability ?? "power") : "other"] ?? "two rows",
    pid: child.pid!,
    ...(of.database !== undefined && { database: of.database }),
    port: Number(new URL(url).port),
    path: CHAT,
    headers: { authorization: `Bearer ${key}` },
    prefix: "up/",
    dir,
    // The process starts once more in place, so the last one counts.
    inspector: [...output.matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1],
    async stop() {
      clearInterval(scraping);
      await ended(child);
      if (of.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

/** All observers that a gateway may use. */
export const everyObserver = (collector: string): string =>
  `[metrics, { use: access-log, with: { file: access.log } }, { use: otlp, with: { endpoint: "${collector}" } }]`;

/** A collector that accepts everything. Its own process has the cost, not the gateway. */
export async function collecting(): Promise<{ readonly url: string; stop(): void }> {
  const server = createHttpServer((req, res) => req.resume().once("end", () => res.end()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** As in production, and three times as often as most scrapers. */
function scraped(output: string): NodeJS.Timeout {
  const admin = /"admin":"([^"]+)"/.exec(output)?.[1];
  const scrape = () =>
    fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${SCRAPER}` } })
      .then(async (answer) => {
        if (!answer.ok) throw new Error(`/metrics answers ${answer.status}`);
        await answer.arrayBuffer();
      })
      .catch((error: Error) => process.stderr.write(`${error.message}\n`));
  void scrape();
  return setInterval(scrape, SCRAPE_MS);
}

/** The same process with models under another prefix. */
export const toward = (target: Target, name: string, prefix: string): Target => ({
  ...target,
  name,
  prefix,
  stop: async () => {},
});

export async function answered(target: Target): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
    method: "POST",
    headers: { ...target.headers, "content-type": "application/json" },
    body: JSON.stringify({
      model: `${target.prefix}bench-s400`,
      messages: [{ role: "user", content: "hello" }],
    }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
}

/**
 * A running server: http://user-chosen:port/path, with TOLLGATE_BENCH_KEY as its bearer token and
 * _PREFIX before models.
 */
export function elsewhere(address: string): Target {
  const url = new URL(address);
  const key = process.env["TOLLGATE_BENCH_KEY"];
  return {
    name: url.host,
    pid: undefined,
    port: Number(url.port || 80),
    path: url.pathname === "/" ? CHAT : url.pathname,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    prefix: process.env["TOLLGATE_BENCH_PREFIX"] ?? "",
    chatOnly: true,
    stop: async () => {},
  };
}
