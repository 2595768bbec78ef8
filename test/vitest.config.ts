import { defineConfig } from "vitest/config";

// The condition makes `tollgate/plugin` and friends mean the source, for built-ins and tests alike.
const conditions = ["tollgate-source"];

/** Folders of tests that leave their process as they found it. */
const CLEAN = "protocols|unit|walk";

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    // What hangs is told apart from what is slow: no test is given less.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Most files wait for a daemon of their own most of the time: two of them share two cores well.
    maxWorkers: 2,
    execArgv: ["--conditions=tollgate-source"],
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
