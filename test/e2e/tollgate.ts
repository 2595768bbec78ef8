// The command line beside a running daemon: another process, no terminal, the daemon's own folder.
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Daemon } from "../gateway.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

export function tollgate(
  at: Pick<Daemon, "file" | "dir">,
  args: readonly string[],
  stopAfter?: (out: string) => boolean,
): Promise<Ran> {
  const child = spawn(
    join(ROOT, "node_modules/.bin/node"),
    ["--conditions=tollgate-source", join(ROOT, "src/cli/bin.ts"), ...args, "-c", at.file],
    { cwd: at.dir, env: { PATH: process.env["PATH"], HOME: at.dir, NO_COLOR: "1" } },
  );
  const ran: Ran = { code: null, out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    ran.out += text;
    if (stopAfter?.(ran.out)) child.kill("SIGINT");
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (ran.err += text));
  return new Promise((resolve) => child.on("close", (code) => resolve({ ...ran, code })));
}
