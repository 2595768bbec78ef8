import { defineConfig } from "vitest/config";

// The condition makes `tollgate/plugin` and friends mean the source, for built-ins and tests alike.
const conditions = ["tollgate-source"];

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ["test/**/*.test.ts"],
    // A rig must end by itself; this only catches a hang.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // Most files wait for a daemon of their own most of the time: two of them share two cores well.
    maxWorkers: 2,
    execArgv: ["--conditions=tollgate-source"],
  },
});
