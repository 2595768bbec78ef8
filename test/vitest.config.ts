import { defineConfig } from "vitest/config";

// The condition makes `tollgate/plugin` and friends mean the source, for built-ins and tests alike.
const conditions = ["tollgate-source"];

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ["test/**/*.test.ts"],
    // What hangs is told apart from what is slow: no test is given less.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    // Most files wait for a daemon of their own most of the time: two of them share two cores well.
    maxWorkers: 2,
    execArgv: ["--conditions=tollgate-source"],
  },
});
