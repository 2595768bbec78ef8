import "./node-version.js";
import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// What is compiled for one file of tests is kept for the next, and for the threads that it starts.
process.env["NODE_COMPILE_CACHE"] ??= new URL(
  "../node_modules/.cache/tests",
  import.meta.url,
).pathname;

// The condition makes `tollgate/plugin` and friends mean the source, for built-ins and tests alike.
const CONDITION = "--conditions=tollgate-source";

/** Folders of tests that leave their process as they found it. */
const CLEAN = "clouds|docs|e2e|examples|pipeline|plugins|protocols|unit";

/** Processor seconds of each file when the costs were last saved: `npm test -- --save-costs`. */
const COSTS: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("costs.json", import.meta.url), "utf8"),
);

/** The most expensive files start first, so that no worker is left with one at the end. Unknown files come before all. */
class ExpensiveFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = new URL("..", import.meta.url).pathname;
    const cost = ({ moduleId }: TestSpecification) =>
      COSTS[moduleId.replace(root, "")] ?? Number.POSITIVE_INFINITY;
    return files.toSorted((a, b) => (cost(a) === cost(b) ? 0 : cost(b) - cost(a)));
  }
}

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    // What hangs is told apart from what is slow: no test is given less.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Node itself reads the source, as it does for the program: nothing is rewritten, and nothing is mocked by its path.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    setupFiles: [
      "test/kit/flush-compile-cache.ts",
      "test/kit/close-open-files.ts",
      "test/kit/cost.ts",
    ],
    // Most files wait for a daemon of their own most of the time: three of them share two cores well.
    maxWorkers: 3,
    sequence: { sequencer: ExpensiveFirst },
    execArgv: [CONDITION],
    projects: [
      // One process plays many of them: a third of their time was making processes and reading the source anew.
      {
        extends: true,
        test: { name: "clean", include: [`test/@(${CLEAN})/**/*.test.ts`], isolate: false },
      },
      {
        extends: true,
        test: { name: "apart", include: ["test/*.test.ts", `test/!(${CLEAN})/**/*.test.ts`] },
      },
    ],
  },
});
