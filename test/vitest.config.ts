import "./node-version.js";
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Compiled code of one test file is kept for the next one, and for the threads that it starts.
process.env["NODE_COMPILE_CACHE"] ??= new URL(
  "../node_modules/.cache/tests",
  import.meta.url,
).pathname;

// With this condition, `tollgate/plugin` and other exports resolve to the source, for built-in
// plugins and tests.
const CONDITION = "--conditions=tollgate-source";

/** Folders of tests that restore the state of their process. */
const CLEAN: readonly string[] = [
  "cli",
  "clouds",
  "docs",
  "e2e",
  "examples",
  "pipeline",
  "plugins",
  "protocols",
  "unit",
];
const FOLDERS = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const testsIn = (folders: readonly string[]) => folders.map((name) => `test/${name}/**/*.test.ts`);

/** CPU seconds of each file when the costs were last saved with `npm test -- --save-costs`. */
const COSTS: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("costs.json", import.meta.url), "utf8"),
);

/**
 * Files with a process of their own start first: a process that files share ends if the next file
 * needs its own. Of each sort, the most expensive files start first, so that no worker has one left
 * at the end. Unknown files start before all others.
 */
class ExpensiveFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = new URL("..", import.meta.url).pathname;
    const cost = ({ moduleId }: TestSpecification) => COSTS[moduleId.replace(root, "")] ?? 1_000;
    const isShared = ({ project }: TestSpecification) => Number(!project.config.isolate);
    return files.toSorted((a, b) => isShared(a) - isShared(b) || cost(b) - cost(a));
  }
}

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    // Long enough to distinguish a hang from a slow test. No test has a shorter timeout.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Node reads the source directly, as in the program: nothing is transformed, and nothing is
    // mocked by its path.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    globalSetup: "test/kit/ledger-thread-bundle.ts",
    setupFiles: [
      "test/kit/ledger-thread.ts",
      "test/kit/trials.ts",
      "test/kit/flush-compile-cache.ts",
      "test/kit/close-open-files.ts",
      "test/kit/cost.ts",
    ],
    // Most files mostly wait for a gateway of their own, so three of them share two cores well.
    maxWorkers: 3,
    sequence: { sequencer: ExpensiveFirst },
    execArgv: [CONDITION],
    projects: [
      // One process runs many of them, because a third of the time was spent on new processes and
      // reading the source again.
      {
        extends: true,
        test: { name: "clean", include: testsIn(CLEAN), isolate: false },
      },
      // An `exclude` here would replace the one of the command line, which selects a tier.
      {
        extends: true,
        test: {
          name: "apart",
          include: ["test/*.test.ts", ...testsIn(FOLDERS.filter((name) => !CLEAN.includes(name)))],
        },
      },
    ],
  },
});
