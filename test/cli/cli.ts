// The command line as somebody runs it: another process, no terminal, a folder of its own.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const root = new URL("../..", import.meta.url).pathname;
const BIN = [
  "--conditions=tollgate-source",
  "--disable-warning=ExperimentalWarning",
  join(root, "src/cli/bin.ts"),
];

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Folder extends AsyncDisposable {
  readonly path: string;
  write(name: string, text: string): Promise<void>;
  tollgate(
    args: readonly string[],
    more?: { env?: NodeJS.ProcessEnv; input?: string },
  ): Promise<Ran>;
  /** A gateway that listens; killed with the folder if it still runs. */
  serve(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<Served>;
}

export interface Served {
  readonly url: string;
  readonly child: ChildProcessWithoutNullStreams;
  /** Log lines so far. */
  readonly lines: Record<string, unknown>[];
  line(msg: RegExp): Promise<Record<string, unknown>>;
  ended: Promise<number | null>;
}

/** Nothing of the machine's own environment that a config could pick up. */
const around = (env: NodeJS.ProcessEnv = {}) => ({
  PATH: process.env["PATH"],
  HOME: process.env["HOME"],
  TMPDIR: process.env["TMPDIR"],
  ...env,
});

export async function folder(files: Readonly<Record<string, string>> = {}): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), "tollgate-cli-"));
  const running = new Set<ChildProcessWithoutNullStreams>();
  const start = (args: readonly string[], env?: NodeJS.ProcessEnv) =>
    spawn(process.execPath, [...BIN, ...args], { cwd: path, env: around(env) });
  const made: Folder = {
    path,
    write: (name, text) => writeFile(join(path, name), text),
    tollgate: (args, { env, input = "" } = {}) => {
      const child = start(args, env);
      child.stdin.on("error", () => {});
      child.stdin.end(input);
      return ended(child);
    },
    async serve(args = [], env) {
      const child = start(["serve", "--port", "0", ...args], env);
      running.add(child);
      const over = ended(child);
      const lines: Record<string, unknown>[] = [];
      const waiting = new Set<() => void>();
      let rest = "";
      child.stdout.on("data", (chunk: Buffer) => {
        const parts = (rest + chunk.toString()).split("\n");
        rest = parts.pop()!;
        for (const part of parts) lines.push(JSON.parse(part) as Record<string, unknown>);
        for (const wake of waiting) wake();
      });
      const line = (msg: RegExp) =>
        new Promise<Record<string, unknown>>((resolve, reject) => {
          const check = () => {
            const found = lines.find((each) => msg.test(`${each["msg"] as string}`));
            if (!found) return;
            waiting.delete(check);
            resolve(found);
          };
          waiting.add(check);
          check();
          void over.then((ran) =>
            reject(new Error(`ended with ${ran.code}: ${ran.stdout}${ran.stderr}`)),
          );
        });
      const { url } = await line(/^listening$/);
      return { url: url as string, child, lines, line, ended: over.then(({ code }) => code) };
    },
    async [Symbol.asyncDispose]() {
      for (const child of running) child.kill("SIGKILL");
      await rm(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  for (const [name, text] of Object.entries(files)) await made.write(name, text);
  return made;
}

function ended(child: ChildProcessWithoutNullStreams): Promise<Ran> {
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    return () => Buffer.concat(chunks).toString();
  });
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code, stdout: stdout!(), stderr: stderr!() }));
  });
}

/** A config that needs nothing and nobody. */
export const SMALL = `listen: { port: 0 }
store: { use: memory }
frontends: [chat-completions, models]
middleware: [auth]
providers:
  demo: { use: demo }
`;
