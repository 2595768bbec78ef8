// The same operations with OpenAI's Python SDK: one process, which receives tasks line by line.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PNG } from "../../rig/money/vendor-formats.ts";
import type { Play } from "../clients.ts";
import { ALONE } from "../stage.ts";
import { compiled, python, versionOf } from "../python/venv.ts";
import { grid, WIRES, type Ask, type Operation } from "./stage.ts";

interface Ended {
  resolve(): void;
  reject(problem: unknown): void;
}

interface Library extends AsyncDisposable {
  readonly operations: { readonly [name: string]: Operation };
}

async function library(): Promise<Library> {
  const child = spawn(await python(), [join(import.meta.dirname, "../python/grid.py")], {
    env: {
      PATH: process.env["PATH"] ?? "",
      LANG: "C.UTF-8",
      PYTHONPYCACHEPREFIX: compiled,
      ...ALONE,
      PICTURE: PNG,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const first = await lines.next();
  if (first.done) throw new Error("It ended without a word.");
  const waiting = new Map<number, Ended>();
  const hearing = hear(lines, waiting);
  const tell = (said: object) => child.stdin.write(`${JSON.stringify(said)}\n`);
  let last = 0;
  const ask =
    (operation: string, way: string): Ask =>
    ({ signal, ...of }) =>
      new Promise<void>((resolve, reject) => {
        const number = ++last;
        waiting.set(number, { resolve, reject });
        tell({ number, asks: { ...of, operation, way } });
        signal?.addEventListener("abort", () => tell({ number }));
      });
  const said = JSON.parse(first.value) as { readonly [operation: string]: readonly string[] };
  const waysOf = (operation: string) =>
    Object.fromEntries(
      said[operation]!.map((way) => [`openai python, ${way}`, ask(operation, way)]),
    );
  return {
    operations: Object.fromEntries(
      Object.entries(WIRES).map(([name, models]) => [name, { models, ways: waysOf(name) }]),
    ),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
      await hearing;
    },
  };
}

async function hear(lines: AsyncIterator<string>, waiting: Map<number, Ended>): Promise<void> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) break;
    const { number, status } = JSON.parse(value) as { number: number; status: number | string };
    const ended = waiting.get(number)!;
    waiting.delete(number);
    if (status === "answered") ended.resolve();
    else ended.reject(typeof status === "number" ? { status } : new Error(status));
  }
  for (const { reject } of waiting.values()) reject(new Error("It ended in the middle."));
}

export const PYTHON_GRID: Play = {
  names: ["grid", "python"],
  title: `every operation by openai ${versionOf("openai")} in Python`,
  async cast() {
    const asked = await library();
    const all = await grid(asked.operations);
    return {
      checks: all.checks,
      async [Symbol.asyncDispose]() {
        await asked[Symbol.asyncDispose]();
        await all[Symbol.asyncDispose]();
      },
    };
  },
};
