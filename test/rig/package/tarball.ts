// The package on Node 20, 22, 24, and 26, each from npm: supported versions serve and respond, and
// older ones print the fix and nothing else.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { cleanClone, linkDependencies } from "../../kit/process/clean-clone.ts";
import { root } from "../../kit/process/program.ts";
import type { Rig } from "../rig.ts";

const NPM = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
/** Each `node` package is for one CPU architecture. */
const PLATFORM = `${process.platform}-${process.arch}`;

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(cwd: string, env: NodeJS.ProcessEnv, command: string, ...args: string[]): Ran {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
  });
  return { code: status, out: stdout ?? "", err: `${stderr ?? ""}${error ?? ""}` };
}

function must(cwd: string, env: NodeJS.ProcessEnv, command: string, ...args: string[]): string {
  const { code, out, err } = run(cwd, env, command, ...args);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${err}`);
  return out;
}

function packed(folder: string, env: NodeJS.ProcessEnv): string {
  const clone = join(folder, "clone");
  cleanClone(clone);
  linkDependencies(clone);
  const said = must(clone, env, "npm", "pack", "--silent", "--pack-destination", folder);
  return join(folder, said.trim().split("\n").at(-1)!);
}

/** Violations on this Node. */
async function judged(folder: string, env: NodeJS.ProcessEnv, isOld: boolean): Promise<string[]> {
  const version = run(folder, env, "npx", "tollgate", "--version");
  const serve = isOld ? run(folder, env, "npx", "tollgate", "serve", "--port", "0") : undefined;
  if (isOld) {
    const told =
      /^Tollgate needs Node 24 or newer; this is v[\d.]+\.\nInstall it from [^\n]+\n +npx -y -p node@24 node [^\n]+\n$/;
    return [version, serve!].flatMap(({ code, out, err }) =>
      code === 1 && out === "" && told.test(err) ? [] : [`ended with ${code}: ${out}${err}`],
    );
  }
  if (!/^\d+\.\d+\.\d+\n$/.test(version.out) || version.err !== "")
    return [`--version: ${version.code} ${version.out}${version.err}`];
  return answers(folder, env);
}

/** `npx tollgate serve`, one response, and its end. */
async function answers(folder: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const words = ["--no", "tollgate", "serve", "--port", "0"];
  const child = spawn("npx", words, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const over = new Promise<void>((resolve) => child.on("close", () => resolve()));
  let [text, told] = ["", ""];
  child.stderr.setEncoding("utf8").on("data", (part: string) => (told += part));
  const url = await new Promise<string | undefined>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      const [, found] = /"url":"(http:[^"]+)"[^\n]*"msg":"listening"/.exec(text) ?? [];
      if (found) resolve(found);
    });
    void over.then(() => resolve(undefined));
  });
  if (url === undefined) return [`it does not serve: ${text}${told}`];
  const key = readFileSync(join(folder, ".tollgate/first-key"), "utf8").trim();
  const res = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hello" }] }),
  });
  const said = await res.text();
  const [, pid] = /"pid":(\d+)/.exec(text) ?? [];
  process.kill(Number(pid), "SIGTERM");
  await over;
  return [
    ...(said.includes('"content":"Hello"') ? [] : [`it answers ${res.status}: ${said}`]),
    ...(told === "" ? [] : [`it says on the way: ${told}`]),
  ];
}

export const rig: Rig = {
  options: { nodes: "20,22,24,26", tarball: "" },
  async run({ nodes = "", tarball = "" }, say) {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-nodes-"));
    const { NODE_OPTIONS: _, ...env } = process.env;
    const others = (env["PATH"] ?? "")
      .split(delimiter)
      .filter((path) => !path.includes("node_modules"));
    const wrong: string[] = [];
    let [answered, refused] = [0, 0];
    try {
      const own = { ...env, PATH: [join(root, "node_modules/.bin"), ...others].join(delimiter) };
      const made = tarball || packed(folder, own);
      const gate = join(folder, "gate");
      mkdirSync(gate);
      writeFileSync(join(gate, "package.json"), JSON.stringify({ private: true }));
      must(gate, own, "npm", "install", ...NPM, made);
      for (const major of nodes.split(",")) {
        const place = join(folder, `node-${major}`);
        mkdirSync(place);
        writeFileSync(join(place, "package.json"), JSON.stringify({ private: true }));
        must(place, own, "npm", "install", ...NPM, `node-${PLATFORM}@${major}`);
        const bin = join(place, "node_modules", `node-${PLATFORM}`, "bin");
        const path = [bin, ...others].join(delimiter);
        const around = { ...env, HOME: folder, PATH: path, NO_COLOR: "1" };
        const version = must(gate, around, "node", "--version").trim();
        const isOld = Number(major) < 24;
        const found = await judged(gate, around, isOld);
        if (found.length > 0) wrong.push(...found.map((words) => `${version}: ${words}`));
        else if (isOld) refused++;
        else answered++;
        say(
          `${version.padEnd(10)} ${found.length > 0 ? "wrong" : isOld ? "is told what to do" : "answers"}`,
        );
      }
      return { wrong, counts: { answered, refused }, seed: 0 };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
