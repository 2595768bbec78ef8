// The store of several gateways with one changed line at a time, and its tests: at least one test
// must fail for each. A defect that is found early is fast, and one that no test finds takes as
// long as all tests.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { hasPostgres } from "../../kit/database/postgres.ts";
import { MUTANTS, type Mutant } from "../../plugins/stores/postgres/mutants.ts";
import { preloaded } from "../mutants/changed-source.ts";
import type { Rig, RigResult } from "../rig.ts";

const root = join(import.meta.dirname, "../../..");
/**
 * A test that a defect keeps waiting has found it. A sound one is far faster on a busy machine too.
 */
const WAITS_MS = 45_000;

export const rig: Rig = {
  options: { only: "", jobs: 2 },
  async run({ only = "", jobs }, say): Promise<RigResult> {
    if (!hasPostgres()) return { wrong: ["there is no PostgreSQL"], counts: {}, seed: 0 };
    const all = Object.entries(MUTANTS).filter(([name]) => name.includes(only));
    const wrong: string[] = [];
    const sound = new Map(
      all.map(([, { by, named }]) => [`${by.join(" ")} ${named ?? ""}`, { by, named }]),
    );
    await together(Number(jobs), [...sound], async ([name, tests]) => {
      const { code, said } = await played(tests);
      say(`sound: ${name}: ${code === 0 ? "passed" : `FAILED\n${said.slice(-2_000)}`}`);
      if (code !== 0) wrong.push(`${name} fails where nothing is changed`);
    });
    if (wrong.length > 0) return { wrong, counts: { mutants: all.length }, seed: 0 };
    await together(Number(jobs), all, async ([name, mutant]) => {
      const began = performance.now();
      const { code, said } = await played(mutant, mutant);
      const seconds = Math.round((performance.now() - began) / 1_000);
      const by = /FAIL +(?:\|\w+\| )?(.+)/.exec(said)?.[1] ?? "a file that does not load";
      say(`${name} (${seconds} s): ${code === 0 ? "NOT FOUND" : by}`);
      if (code === 0) wrong.push(`${name} is not found`);
      else if (said.includes("has no line for the plant")) wrong.push(`${name} changes no line`);
    });
    return { wrong, counts: { mutants: all.length, found: all.length - wrong.length }, seed: 0 };
  },
};

async function together<T>(
  many: number,
  of: readonly T[],
  work: (one: T) => Promise<void>,
): Promise<void> {
  const left = [...of];
  const hand = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: many }, hand));
}

function played(
  { by, named }: Pick<Mutant, "by" | "named">,
  mutant?: Mutant,
): Promise<{ code: number; said: string }> {
  const files = by.map((name) => `test/plugins/stores/postgres/${name}.test.ts`);
  const words = [
    "run",
    "--config=test/vitest.config.ts",
    "--bail=1",
    "--maxWorkers=1",
    `--testTimeout=${WAITS_MS}`,
    ...(named ? ["-t", named] : []),
  ];
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [join(root, "node_modules/vitest/vitest.mjs"), ...words, ...files],
      {
        cwd: root,
        env: { ...process.env, NO_COLOR: "1", ...(mutant && preloaded(mutant)) },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
    child.once("close", (code) => resolve({ code: code ?? 1, said }));
  });
}
