// Which checks run when. Three tiers, each with one command:
//
//     commit    npm test               every law, at most 5 minutes on two cores
//     ci        npm run test:ci        also real clients, PostgreSQL, a browser, Prometheus, and daemons: at most 12 minutes
//     nightly   npm run test:nightly   everything: all rigs, planted bugs, fleets, long loads, Python clients, deployment files
//
// A test file that is not listed here belongs to the commit tier. A file that takes more than 10 s of processor time (`test/costs.json`)
// or starts more than 5 programs belongs to a higher one. Large tables and random cases try a part of themselves outside the nightly
// tier (`test/kit/effort.ts`).
export const TIERS = ["commit", "ci", "nightly"] as const;
export type Tier = (typeof TIERS)[number];

/** Test files that the commit run leaves out. */
export const FILES: Readonly<Record<Exclude<Tier, "commit">, readonly string[]>> = {
  ci: [
    "test/cli/completion.test.ts",
    "test/cli/plugin-lock.test.ts",
    "test/cli/plugin.test.ts",
    "test/cli/serve.test.ts",
    "test/clients/clients.test.ts",
    "test/e2e/admin-doors.test.ts",
    "test/e2e/admin.test.ts",
    "test/e2e/fleet-full.test.ts",
    "test/e2e/fleet.test.ts",
    "test/e2e/gemini/clients.test.ts",
    "test/e2e/grid.test.ts",
    "test/e2e/hanging-store.test.ts",
    "test/e2e/images/addresses.test.ts",
    "test/e2e/images/live.test.ts",
    "test/e2e/leaving.test.ts",
    "test/e2e/listeners.test.ts",
    "test/e2e/log-lines.test.ts",
    "test/e2e/look-up.test.ts",
    "test/e2e/notices.test.ts",
    "test/e2e/observers.test.ts",
    "test/e2e/outside-socket.test.ts",
    "test/e2e/outside.test.ts",
    "test/e2e/package.test.ts",
    "test/e2e/plugin-edit.test.ts",
    "test/e2e/postgres.test.ts",
    "test/e2e/reload.test.ts",
    "test/e2e/socket-activation.test.ts",
    "test/e2e/third-party.test.ts",
    "test/e2e/workers.test.ts",
    "test/e2e/zdr.test.ts",
    "test/plugins/conformance.test.ts",
    "test/plugins/stores/crash.test.ts",
    "test/plugins/stores/moving.test.ts",
    "test/plugins/stores/postgres-closer.test.ts",
    "test/plugins/stores/postgres-hot.test.ts",
    "test/plugins/stores/postgres-keeping.test.ts",
    "test/plugins/stores/postgres-months.test.ts",
    "test/plugins/stores/postgres-rules.test.ts",
    "test/plugins/stores/postgres-terms.test.ts",
    "test/plugins/stores/postgres-tls.test.ts",
    "test/plugins/stores/postgres-worlds.test.ts",
    "test/plugins/stores/postgres.test.ts",
    "test/plugins/stores/sqlite.test.ts",
    "test/rig/never-worse.test.ts",
    "test/rig/zdr.test.ts",
    "test/types.test.ts",
    "test/walk/bounds/every.test.ts",
  ],
  nightly: [
    "test/cli/check-plugin.test.ts",
    "test/clouds/conformance.test.ts",
    "test/clouds/money.test.ts",
    "test/e2e/cuts.test.ts",
    "test/e2e/ended-generations.test.ts",
    "test/e2e/fleet-apart.test.ts",
    "test/e2e/fleet-cut.test.ts",
    "test/e2e/hostile.test.ts",
    "test/e2e/playground-code.test.ts",
    "test/e2e/pulse.test.ts",
    "test/e2e/readme.test.ts",
    "test/e2e/saves.test.ts",
    "test/e2e/starts-pairwise.test.ts",
    "test/e2e/store-copy.test.ts",
    "test/kit/postgres.test.ts",
    "test/plugins/defects/defects.test.ts",
    "test/plugins/stores/on-postgres.test.ts",
    "test/plugins/stores/postgres-apart.test.ts",
    "test/plugins/stores/postgres-doubt.test.ts",
    "test/plugins/stores/postgres-failover.test.ts",
    "test/plugins/stores/postgres-roads.test.ts",
    "test/protocols/linear/linear.test.ts",
    "test/protocols/linear/places.test.ts",
    "test/rig/access-log.test.ts",
    "test/rig/affinity.test.ts",
    "test/rig/alerts.test.ts",
    "test/rig/author.test.ts",
    "test/rig/budget.test.ts",
    "test/rig/canary.test.ts",
    "test/rig/clock.test.ts",
    "test/rig/crash.test.ts",
    "test/rig/cuts.test.ts",
    "test/rig/drills.test.ts",
    "test/rig/failover.test.ts",
    "test/rig/faults.test.ts",
    "test/rig/fleet.test.ts",
    "test/rig/fuzz.test.ts",
    "test/rig/hangups.test.ts",
    "test/rig/metrics.test.ts",
    "test/rig/plugins.test.ts",
    "test/rig/prune.test.ts",
    "test/rig/races.test.ts",
    "test/rig/readers.test.ts",
    "test/rig/restart.test.ts",
    "test/rig/storm.test.ts",
    "test/rig/template.test.ts",
    "test/rig/traces.test.ts",
    "test/rig/unbroken.test.ts",
    "test/rig/upgrade.test.ts",
    "test/unit/gateway/workers/lent-store.test.ts",
    "test/unit/testing/conformance.test.ts",
  ],
};

/** Test files that measure the machine or use all of it. They run one at a time, with nothing next to them. */
export const ALONE: readonly string[] = [
  "test/bench/guard.test.ts",
  "test/rig/attack.test.ts",
  "test/rig/ledger-size.test.ts",
  "test/rig/overload.test.ts",
  "test/rig/soak.test.ts",
];

/** A check that is a program of its own. It ends with a line `N passed, N failed`, or its exit code decides. */
export interface Program {
  readonly name: string;
  readonly tier: Exclude<Tier, "commit">;
  /** Arguments of the checkout's Node. */
  readonly args: readonly string[];
  /** Paths of which one must exist. Otherwise the check is skipped, and the run says so. */
  readonly needs?: readonly string[];
}

const source = (...args: string[]) => ["--conditions=tollgate-source", ...args];

/** In the order in which they run. */
export const PROGRAMS: readonly Program[] = [
  {
    name: "console",
    tier: "ci",
    args: source("test/console/proof.ts"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "console journeys",
    tier: "ci",
    args: source("test/console/main.ts"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "metrics",
    tier: "ci",
    args: source("test/rig/main.ts", "metrics"),
    needs: ["/usr/bin/promtool"],
  },
  {
    name: "on postgres",
    tier: "nightly",
    args: ["test/on-postgres.ts", "--brief"],
    needs: ["/usr/lib/postgresql"],
  },
  {
    name: "python clients",
    tier: "nightly",
    args: source("test/clients/main.ts", "python", "--brief"),
  },
  {
    name: "coding clients and agent frameworks",
    tier: "nightly",
    args: source("test/clients/main.ts", "agents", "--brief"),
  },
  { name: "collector", tier: "nightly", args: source("test/rig/collector/main.ts") },
  { name: "access log", tier: "nightly", args: source("test/rig/main.ts", "access-log") },
  { name: "deploy", tier: "nightly", args: source("test/deploy/main.ts") },
  {
    name: "console pictures",
    tier: "nightly",
    args: source("test/console/shots.ts"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "large consoles",
    tier: "nightly",
    args: source(
      "test/rig/main.ts",
      "consoles",
      "--rows",
      "20000",
      "--calls",
      "200",
      "--patience",
      "10",
    ),
    needs: ["/usr/bin/chromium"],
  },
];
