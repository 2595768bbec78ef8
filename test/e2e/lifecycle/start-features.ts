// Sections of a gateway.yaml that can be combined, and rows that cover every pair of them with
// every store and number of workers.
import { join } from "node:path";
import type { Json, JsonObject } from "tollgate/plugin";
import { createSeededRandom } from "../../../src/testing/random.ts";
import { root } from "../../kit/process/program.ts";

export interface Place {
  /** Folder with `cert.pem`, `key.pem`, and `more.yaml`. */
  readonly dir: string;
  /** An address at which nothing listens. */
  readonly away: string;
}

export type Feature = (at: Place) => JsonObject;

export const FEATURES: Readonly<Record<string, Feature>> = {
  retention: () => ({ ledger: { retention: "30d" } }),
  accounts: () => ({
    accounts: {
      acme: { limits: ["usd=1000/month"], privacy: "required" },
      research: { parent: "acme", limits: ["requests=600/minute"] },
    },
    key_defaults: { limits: ["requests=30/minute"] },
  }),
  console: () => ({
    admin: { port: 0, tokens: { ann: { role: "owner", token: "0123456789abcdef01234567" } } },
    observers: ["console", "metrics"],
  }),
  telling: ({ dir, away }) => ({
    observers: [
      { use: "access-log", with: { file: `${dir}/access.log` } },
      { use: "otlp", with: { endpoint: away } },
      { use: "reconcile", with: { bills: { demo: { from: "openai", key: "k", base_url: away } } } },
      {
        use: "alerts",
        with: {
          receivers: { ops: { url: away, format: "slack" } },
          rules: [{ on: ["ledger.down"] }],
        },
      },
    ],
  }),
  tls: ({ dir }) => ({
    listen: [
      { host: "127.0.0.1", port: 0, tls: { cert: `${dir}/cert.pem`, key: `${dir}/key.pem` } },
      { socket: `${dir}/clients.sock` },
    ],
  }),
  outside: () => ({
    middleware: [
      { use: join(root, "examples/guard.ts"), isolate: "child", with: { words: ["secret"] } },
    ],
  }),
  tokens: ({ away }) => ({
    middleware: [
      {
        use: "jwt",
        with: { issuers: { corp: { issuer: away, audience: ["tollgate"], jwks: `${away}/jwks` } } },
      },
    ],
  }),
  bounded: () => ({
    bounds: { connections: 1_000, in_flight: "64MiB" },
    overload: { max_concurrent: 100, max_queue_wait: "100ms" },
    files: { lifetime: "10m" },
    request_history: 0,
    shutdown: { announce: "0s", timeout: "1s" },
    response_headers: ["x-tollgate-cost"],
    strict: true,
  }),
  names: ({ dir, away }) => ({
    include: `${dir}/more.yaml`,
    proxy: { url: away },
    models: { "gpt-*": ["demo/*"], fast: { candidates: ["demo/echo"], pick: "fastest" } },
  }),
};

const FACTORS: Readonly<Record<string, readonly string[]>> = {
  workers: ["1", "2"],
  store: ["memory", "sqlite", "postgres"],
  ...Object.fromEntries(Object.keys(FEATURES).map((name) => [name, ["off", "on"]])),
};

export type Row = Readonly<Record<string, string>>;

/** The memory store cannot prune. A rejected row would cover no pair. */
const isRefused = (row: Row): boolean => row["store"] === "memory" && row["retention"] === "on";

/**
 * Rows in which every value of a factor meets every value of each other factor, found greedily and
 * deterministically.
 */
export function pairwise(seed = 1): readonly Row[] {
  const names = Object.keys(FACTORS);
  const left = new Set<string>();
  for (const [i, a] of names.entries())
    for (const b of names.slice(i + 1))
      for (const x of FACTORS[a]!) for (const y of FACTORS[b]!) left.add(`${a}=${x} ${b}=${y}`);
  left.delete("store=memory retention=on");
  const next = createSeededRandom(seed);
  const any = (): Row =>
    Object.fromEntries(
      names.map((name) => [name, FACTORS[name]![Math.floor(next() * FACTORS[name]!.length)]!]),
    );
  const rows: Row[] = [];
  while (left.size > 0) {
    const tries = Array.from({ length: 200 }, any)
      .filter((row) => !isRefused(row))
      .map((row) => ({
        row,
        found: pairsOf(row).filter((pair) => left.has(pair)),
      }));
    const best = tries.reduce((a, b) => (b.found.length > a.found.length ? b : a));
    if (best.found.length === 0) continue;
    for (const pair of best.found) left.delete(pair);
    rows.push(best.row);
  }
  return rows;
}

export function pairsOf(row: Row): readonly string[] {
  const all = Object.entries(row);
  return all.flatMap(([a, x], i) => all.slice(i + 1).map(([b, y]) => `${a}=${x} ${b}=${y}`));
}

/** The gateway.yaml of a row. `store`: the entry of a store that needs more than its name. */
export function configOf(row: Row, at: Place, store: (name: string) => Json): JsonObject {
  const base: Record<string, Json> = {
    workers: Number(row["workers"]),
    store: store(row["store"]!),
    state_dir: `${at.dir}/state`,
    listen: { host: "127.0.0.1", port: 0 },
    providers: { demo: { use: "demo" } },
  };
  const parts = Object.entries(FEATURES)
    .filter(([name]) => row[name] === "on")
    .map(([, feature]) => feature(at) as Record<string, Json>);
  for (const part of parts)
    for (const [key, value] of Object.entries(part)) {
      const lists = Array.isArray(value) && key !== "listen";
      base[key] = lists ? [...((base[key] as Json[] | undefined) ?? []), ...value] : value;
    }
  if (base["middleware"])
    base["middleware"] = [...(base["middleware"] as Json[]), "auth", "zdr", "limits", "usage"];
  return base;
}
