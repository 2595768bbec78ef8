// Output of `tollgate check` and `tollgate serve` for one config.
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Json } from "tollgate/plugin";
import { postgresStoreYaml, type Postgres } from "../../kit/database/postgres.ts";
import { spawnTollgate, startServe } from "../../kit/process/program.ts";
import { certificates } from "../../rig/faults/certificates.ts";
import { configOf, type Row } from "./start-features.ts";

export interface Both {
  /** Exit code and output of `check`. */
  readonly check: { readonly ok: boolean; readonly output: string };
  /** Whether the gateway served and stopped with code 0. */
  readonly start: { readonly ok: boolean; readonly output: string };
}

export async function both(row: Row, postgres: Postgres | undefined): Promise<Both> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-starts-"));
  try {
    const { cert, key } = (await certificates("localhost")).good;
    await writeFile(join(dir, "cert.pem"), cert);
    await writeFile(join(dir, "key.pem"), key);
    await writeFile(join(dir, "more.yaml"), `models: { small: "demo/echo" }\n`);
    const database = row["store"] === "postgres" ? await postgres!.database() : "";
    const store = (name: string): Json =>
      name === "postgres" ? { use: POSTGRES, with: { url: database } } : name;
    const config = configOf(row, { dir, away: "http://127.0.0.1:9" }, store);
    const file = join(dir, "gateway.yaml");
    await writeFile(file, JSON.stringify(config, null, 2));
    return { check: await checked(dir, file), start: await started(dir, file) };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The path of the PostgreSQL store's module. */
const POSTGRES = /use: "([^"]+)"/.exec(postgresStoreYaml("postgres://x"))![1]!;

async function checked(cwd: string, file: string): Promise<Both["check"]> {
  const child = spawnTollgate({ cwd, args: ["check", "-c", file] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { ok: code === 0, output };
}

async function started(cwd: string, file: string): Promise<Both["start"]> {
  try {
    const served = await startServe({ cwd, args: ["-c", file] });
    const code = await served.stop();
    return { ok: code === 0, output: served.output() };
  } catch (error) {
    return { ok: false, output: String(error) };
  }
}
