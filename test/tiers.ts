// Which checks run when. Three tiers, each with one command:
//
//     commit    npm test               every unit and contract test, at most 5 minutes on two cores
//     ci        npm run test:ci        also real clients, PostgreSQL, a browser, Prometheus, and gateway processes: at most 12 minutes
//     nightly   npm run test:nightly   everything: all rigs, planted bugs, fleets, long loads, Python clients, deployment files
//
// A test file that is not listed here belongs to the commit tier. A file that takes more than 20 s
// of CPU time (`test/costs.json`) or starts more than 5 programs belongs to a higher one. Outside
// the nightly tier, large tables and random cases run in part (`test/kit/law-effort.ts`).
export const TIERS = ["commit", "ci", "nightly"] as const;
export type Tier = (typeof TIERS)[number];

/** Test files of the ci run. */
export const CI: readonly string[] = [
  "test/e2e/operations/every-operation.test.ts",
  "test/examples/mcp-relay.test.ts",
  "test/e2e/images/odd-fields.test.ts",
  "test/e2e/images/egress.test.ts",
  "test/e2e/observers/readings.test.ts",
  "test/e2e/observers/access-log.test.ts",
  "test/e2e/observers/alerts.test.ts",
  "test/e2e/observers/metrics.test.ts",
  "test/e2e/plugins/third-party-audio.test.ts",
  "test/e2e/plugins/third-party-operation.test.ts",
  "test/e2e/sdk/openai.test.ts",
  "test/e2e/sdk/ai-sdk.test.ts",
  "test/e2e/sdk/anthropic.test.ts",
  "test/e2e/lifecycle/allocator.test.ts",
  "test/e2e/lifecycle/idle-sockets.test.ts",
  "test/e2e/lifecycle/no-plugins.test.ts",
  "test/e2e/lifecycle/service-manager.test.ts",
  "test/e2e/gemini/frontend.test.ts",
  "test/e2e/gemini/edges.test.ts",
  "test/e2e/admin/console-rights.test.ts",
  "test/e2e/admin/oidc-key-rotation.test.ts",
  "test/e2e/admin/provider-commands.test.ts",
  "test/e2e/access/account-commands.test.ts",
  "test/e2e/access/query-key.test.ts",
  "test/e2e/ledger/backup-and-erasure.test.ts",
  "test/e2e/ledger/state-of-releases.test.ts",
  "test/plugins/stores/archives.test.ts",
  "test/cli/reload.test.ts",
  "test/cli/plugins/plugin-add.test.ts",
  "test/cli/commands.test.ts",
  "test/cli/every-door.test.ts",
  "test/cli/plugins/new.test.ts",
  "test/cli/serve.test.ts",
  "test/clients/client-sessions.test.ts",
  "test/clients/clients.test.ts",
  "test/clients/mcp/matrix.test.ts",
  "test/e2e/ledger/mcp-kill.test.ts",
  "test/e2e/mcp/responses-tools.test.ts",
  "test/e2e/mcp/messages-tools.test.ts",
  "test/clients/realtime/realtime.test.ts",
  "test/docs/examples.test.ts",
  "test/e2e/admin/roles.test.ts",
  "test/e2e/admin/admin-routes.test.ts",
  "test/e2e/gemini/clients.test.ts",
  "test/e2e/operations/grid.test.ts",
  "test/e2e/operations/uploads.test.ts",
  "test/e2e/ledger/hanging-store.test.ts",
  "test/e2e/jobs/background.test.ts",
  "test/e2e/jobs/native-background.test.ts",
  "test/e2e/images/addresses.test.ts",
  "test/e2e/images/live.test.ts",
  "test/e2e/images/sdks.test.ts",
  "test/e2e/lifecycle/draining.test.ts",
  "test/e2e/lifecycle/finished-requests.test.ts",
  "test/e2e/lifecycle/listeners.test.ts",
  "test/e2e/observers/log-lines.test.ts",
  "test/e2e/admin/request-history.test.ts",
  "test/e2e/observers/notices.test.ts",
  "test/e2e/observers/observers.test.ts",
  "test/e2e/sign-in/workers.test.ts",
  "test/e2e/plugins/declared-needs.test.ts",
  "test/e2e/plugins/isolated-plugins.test.ts",
  "test/e2e/plugins/plugin-edit.test.ts",
  "test/e2e/ledger/postgres.test.ts",
  "test/e2e/lifecycle/reload.test.ts",
  "test/e2e/lifecycle/socket-activation.test.ts",
  "test/e2e/lifecycle/starts.test.ts",
  "test/e2e/lifecycle/upgrade-socket.test.ts",
  "test/e2e/lifecycle/websockets.test.ts",
  "test/e2e/lifecycle/workers.test.ts",
  "test/e2e/package/dev.test.ts",
  "test/e2e/package/npm-start.test.ts",
  "test/plugins/stores/conformance.test.ts",
  "test/plugins/stores/postgres/budgets/exhausted-budget.test.ts",
  "test/plugins/stores/postgres/entry-numbers.test.ts",
  "test/plugins/stores/postgres/meter-sweep.test.ts",
  "test/plugins/stores/postgres/monthly-partitions.test.ts",
  "test/plugins/stores/postgres/rules.test.ts",
  "test/plugins/stores/postgres/tls.test.ts",
  "test/plugins/stores/sqlite.test.ts",
  "test/plugins/templates.test.ts",
  "test/protocols/released-memory.test.ts",
  "test/rig/connections/truncation.test.ts",
  "test/rig/routing/never-worse.test.ts",
  "test/rig/sockets/sockets.test.ts",
  "test/unit/admin/erase-account.test.ts",
  "test/types.test.ts",
  "test/pipeline/admission/every.test.ts",
  "test/pipeline/admission/ids.test.ts",
];

/**
 * Test files of the nightly run, with the folders and files that each concerns. `--since` selects
 * by them.
 */
export const NIGHTLY: Readonly<Record<string, readonly string[]>> = {
  "test/clients/mcp/agents.test.ts": ["plugins/frontends/mcp"],
  "test/clients/mcp/conformance.test.ts": ["plugins/frontends/mcp"],
  "test/clients/mcp/python.test.ts": ["plugins/frontends/mcp"],
  "test/clients/mcp/servers.test.ts": ["plugins/frontends/mcp"],
  "test/e2e/ledger/mcp-kills.test.ts": ["plugins/frontends/mcp", "plugins/stores", "src/store"],
  "test/plugins/stores/postgres/minimal-store.test.ts": ["plugins/stores/postgres", "src/testing"],
  "test/plugins/stores/postgres/call-terms.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/retention.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/failover/loss-report.test.ts": ["plugins/stores/postgres"],
  "test/cli/plugins/plugin-lock.test.ts": ["src/cli", "src/loader"],
  "test/cli/plugins/plugin-commands.test.ts": ["src/cli", "src/loader"],
  "test/e2e/plugins/isolated-socket.test.ts": ["src/isolation", "src/runtime/sockets"],
  "test/examples/words-guard.test.ts": ["examples"],
  "test/examples/pii-vault.test.ts": ["examples"],
  "test/examples/exact-cache.test.ts": ["examples"],
  "test/examples/remote-guard.test.ts": ["examples"],
  "test/examples/cost-routing.test.ts": ["examples"],
  "test/e2e/operations/embeddings.test.ts": ["src/protocols", "src/model/operations"],
  "test/e2e/operations/model-kinds.test.ts": ["src/protocols", "src/model/operations"],
  "test/e2e/operations/audio.test.ts": ["src/protocols", "src/model/operations"],
  "test/e2e/sdk/langchain.test.ts": ["src/protocols"],
  "test/e2e/sdk/anthropic-0.test.ts": ["src/protocols"],
  "test/e2e/images/edits.test.ts": ["src/protocols", "plugins/frontends/images.ts"],
  "test/e2e/lifecycle/debugger.test.ts": ["src/runtime", "src/server"],
  "test/plugins/edited-template.test.ts": ["templates", "src/testing"],
  "test/clients/realtime/python.test.ts": ["src/protocols", "src/pipeline/sockets"],
  "test/clients/signed-in.test.ts": ["plugins/frontends", "src/plugin/sign-in", "src/protocols"],
  "test/clients/own-sign-in.test.ts": ["plugins/frontends/claude-gateway", "src/plugin/sign-in"],
  "test/pipeline/goodput/goodput.test.ts": ["src/pipeline/admission"],
  "test/rig/privacy/zdr.test.ts": ["src/pipeline", "src/protocols"],
  "test/plugins/stores/postgres/budgets/budget-leases.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/transfer.test.ts": ["src/store", "plugins/stores"],
  "test/plugins/stores/crash.test.ts": ["src/store", "plugins/stores"],
  "test/e2e/jobs/provider-batches.test.ts": ["plugins/frontends/jobs", "src/protocols/batches"],
  "test/e2e/jobs/background-crash.test.ts": ["plugins/frontends/background", "src/runtime"],
  "test/e2e/jobs/gateway-lines-crash.test.ts": [
    "plugins/frontends/jobs",
    "src/pipeline/job-lines.ts",
  ],
  "test/clients/python/jobs.test.ts": ["plugins/frontends/jobs", "plugins/frontends/background"],
  "test/e2e/plugins/third-party.test.ts": ["src/loader", "src/testing"],
  "test/e2e/ledger/fleet.test.ts": ["plugins/stores/postgres"],
  "test/e2e/ledger/price-feed-workers.test.ts": ["src/catalog/prices", "src/runtime/workers"],
  "test/cli/completion.test.ts": ["src/cli"],
  "test/cli/plugins/check-plugin.test.ts": ["src/testing", "src/cli/check-plugin"],
  "test/clouds/conformance.test.ts": [
    "plugins/providers/aws",
    "plugins/providers/azure-foundry",
    "plugins/providers/vertex",
    "src/testing",
  ],
  "test/clouds/money.test.ts": [
    "plugins/providers/aws",
    "plugins/providers/azure-foundry",
    "plugins/providers/vertex",
    "src/money",
  ],
  "test/e2e/sdk/truncated-streams.test.ts": ["src/protocols", "src/pipeline/upstream"],
  "test/e2e/lifecycle/ended-generations.test.ts": ["src/runtime", "src/server"],
  "test/e2e/ledger/scope-first-calls.test.ts": [
    "plugins/stores/postgres",
    "src/pipeline/scopes",
    "src/store",
  ],
  "test/e2e/ledger/fleet-database-outage.test.ts": ["plugins/stores/postgres"],
  "test/e2e/ledger/fleet-key-revocation.test.ts": ["plugins/stores/postgres"],
  "test/e2e/ledger/fleet-disk-full.test.ts": ["plugins/stores/postgres"],
  "test/e2e/sdk/hostile-upstream.test.ts": ["src/pipeline", "src/runtime", "src/server"],
  "test/e2e/admin/playground-code.test.ts": ["plugins/observers/console"],
  "test/e2e/lifecycle/watchdog.test.ts": ["src/runtime", "src/server"],
  "test/e2e/package/readme.test.ts": ["src/config", "src/cli"],
  "test/e2e/lifecycle/config-saves.test.ts": ["src/config", "src/runtime", "src/server"],
  "test/e2e/lifecycle/starts-pairwise.test.ts": [
    "src/config",
    "src/runtime",
    "src/server",
    "plugins/stores",
  ],
  "test/e2e/ledger/store-copy.test.ts": ["src/store", "plugins/stores"],
  "test/kit/database/postgres.test.ts": [],
  "test/e2e/package/package.test.ts": ["package.json", ".build", "src/cli"],
  "test/plugins/recorded-conformance.test.ts": ["plugins", "src/testing"],
  "test/plugins/defects/defects.test.ts": ["src/testing"],
  "test/plugins/stores/postgres/contract.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/failover/database-outage.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/unknown-outcomes.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/failover/failover.test.ts": ["plugins/stores/postgres"],
  "test/plugins/stores/postgres/pooler-and-latency.test.ts": ["plugins/stores/postgres"],
  "test/protocols/linear/linear.test.ts": ["src/protocols"],
  "test/protocols/linear/places.test.ts": ["src/protocols"],
  "test/plugins/stores/postgres/failover/random-fleets.test.ts": ["plugins/stores/postgres"],
  "test/rig/observers/access-log.test.ts": ["plugins/observers/access-log"],
  "test/rig/routing/affinity.test.ts": ["src/pipeline/routing"],
  "test/rig/observers/alerts.test.ts": ["plugins/observers/alerts"],
  "test/rig/authoring/plugin-author.test.ts": ["src/testing", "templates"],
  "test/rig/money/batches.test.ts": ["plugins/frontends/jobs", "src/pipeline/job-lines.ts"],
  "test/rig/money/batch-crashes.test.ts": ["plugins/frontends/jobs", "src/pipeline/job-lines.ts"],
  "test/rig/money/budget.test.ts": ["src/store", "plugins/stores"],
  "test/rig/privacy/canary.test.ts": ["src/pipeline", "src/protocols"],
  "test/rig/privacy/client-canary.test.ts": ["src/pipeline", "src/isolation"],
  "test/rig/lifecycle/clock.test.ts": ["src/runtime", "src/server", "plugins/stores"],
  "test/rig/ledger/crash.test.ts": ["src/store", "plugins/stores"],
  "test/rig/drills/drills.test.ts": ["src/runtime", "src/server", "src/pipeline"],
  "test/rig/routing/failover.test.ts": ["src/pipeline"],
  "test/rig/faults/faults.test.ts": ["src/pipeline"],
  "test/rig/fleet/sim/first-calls-mutants.test.ts": [
    "plugins/stores/postgres",
    "src/store",
    "test/rig/fleet/sim",
  ],
  "test/rig/fleet/sim/fleet-sim-mutants.test.ts": ["plugins/stores/postgres", "test/rig/fleet/sim"],
  "test/rig/fleet/fleet.test.ts": ["plugins/stores/postgres"],
  "test/rig/fuzz/fuzz.test.ts": ["src/pipeline", "src/protocols"],
  "test/rig/connections/client-disconnects.test.ts": ["src/pipeline"],
  "test/rig/observers/metrics.test.ts": ["plugins/observers/metrics"],
  "test/rig/plugins/plugins.test.ts": ["src/loader", "src/isolation"],
  "test/rig/ledger/prune.test.ts": ["src/store", "plugins/stores"],
  "test/rig/connections/connection-races.test.ts": ["src/runtime", "src/server"],
  "test/rig/connections/slow-readers.test.ts": ["src/store", "plugins/stores"],
  "test/rig/sockets/socket-mutants.test.ts": [
    "src/pipeline/sockets",
    "src/pipeline/upstream",
    "src/runtime/sockets",
    "src/protocols/realtime",
    "src/protocols/gemini-live",
    "src/protocols/responses",
  ],
  "test/rig/lifecycle/restart.test.ts": ["src/runtime", "src/server"],
  "test/rig/routing/retry-storm.test.ts": ["src/pipeline"],
  "test/rig/authoring/template.test.ts": ["src/testing", "templates"],
  "test/rig/observers/traces.test.ts": ["plugins/observers/otlp"],
  "test/rig/lifecycle/zero-downtime.test.ts": ["src/runtime", "src/server"],
  "test/rig/lifecycle/upgrade.test.ts": ["src/runtime", "src/server", "plugins/stores"],
  "test/unit/pipeline/virtual-connection.test.ts": [
    "src/pipeline/exchange",
    "src/pipeline/subrequest.ts",
  ],
  "test/unit/runtime/workers/lent-store.test.ts": ["src/runtime/workers"],
  "test/unit/testing/conformance.test.ts": ["src/testing"],
};

/** Test files that measure the machine or use all of it. They run one at a time, with nothing next to them. */
export const ALONE: readonly string[] = [
  "test/bench/guard.test.ts",
  "test/rig/attack/attack.test.ts",
  "test/rig/ledger/ledger-size.test.ts",
  "test/rig/load/overload.test.ts",
  "test/rig/load/soak.test.ts",
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
    args: source("test/console/proof.ts", "--brief"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "console attacks",
    tier: "nightly",
    args: source("test/console/proof.ts"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "console journeys",
    tier: "nightly",
    args: source("test/console/main.ts"),
    needs: ["/usr/bin/chromium"],
  },
  {
    name: "metrics",
    tier: "ci",
    args: source("test/rig/main.ts", "metrics", "--requests", "150", "--names", "100"),
    needs: ["/usr/bin/promtool"],
  },
  {
    name: "metrics of many names",
    tier: "nightly",
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
  { name: "collector", tier: "nightly", args: source("test/rig/observers/collector/main.ts") },
  { name: "access log", tier: "nightly", args: source("test/rig/main.ts", "access-log") },
  {
    name: "mutants",
    tier: "nightly",
    args: source("test/mutants.ts", "--seed", "7", "--count", "10", "--least", "0.5"),
  },
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

/** Tests that `test/on-postgres.ts` repeats on a real PostgreSQL. */
export const ON_POSTGRES = {
  /** Tests of whole gateways that it leaves out, and the reason of each. */
  leftOut: {
    "test/e2e/ledger/fleet.test.ts": "uses PostgreSQL already",
    "test/e2e/ledger/fleet-database-outage.test.ts": "uses PostgreSQL already",
    "test/e2e/ledger/fleet-key-revocation.test.ts": "uses PostgreSQL already",
    "test/e2e/ledger/fleet-disk-full.test.ts": "uses PostgreSQL already",
    "test/e2e/ledger/scope-first-calls.test.ts": "uses PostgreSQL already",
    "test/e2e/ledger/hanging-store.test.ts": "brings its own store, which hangs",
    "test/e2e/ledger/backup-and-erasure.test.ts":
      "tests the file of the SQLite store: its backups, and what is missing in it",
    "test/e2e/ledger/state-of-releases.test.ts":
      "opens state directories of earlier releases, which contain the file of the SQLite store",
    "test/e2e/package/package.test.ts": "installs packages, and never starts this store",
    "test/e2e/ledger/postgres.test.ts": "uses PostgreSQL already",
    "test/e2e/package/readme.test.ts": "runs the examples of pages, with the stores that they name",
    "test/e2e/ledger/retention.test.ts": "fills the file of the SQLite store beforehand",
    "test/e2e/lifecycle/config-saves.test.ts":
      "saves gateway.yaml as other programs do, and its text names no store",
    "test/e2e/ledger/store-copy.test.ts": "names both stores itself",
    "test/e2e/plugins/third-party.test.ts": "uses third-party plugins, with a store of its own",
  },
  /**
   * With `--brief`: tests of what the store decides or returns. They cover keys and accounts, limits and budgets, rows and their sums, calls that a crash
   * left open, texts as they were written, and events of thresholds.
   */
  brief: [
    "test/e2e/access/account-commands.test.ts",
    "test/e2e/access/accounts.test.ts",
    "test/e2e/admin/admin-api.test.ts",
    "test/e2e/observers/alerts.test.ts",
    "test/e2e/access/billing-abuse.test.ts",
    "test/e2e/images/money.test.ts",
    "test/e2e/access/keys.test.ts",
    "test/e2e/ledger/usage.test.ts",
    "test/e2e/admin/request-history.test.ts",
    "test/e2e/observers/metrics.test.ts",
    "test/e2e/observers/observers.test.ts",
    "test/e2e/protocols/paths.test.ts",
    "test/e2e/observers/readings.test.ts",
    "test/e2e/observers/request-record.test.ts",
    "test/e2e/protocols/responses.test.ts",
  ],
  /** With `--version`: the tests of the store itself. */
  laws: [
    "test/plugins/stores/postgres/contract.test.ts",
    "test/plugins/stores/postgres/pooler-and-latency.test.ts",
    "test/plugins/stores/postgres/budgets/budget-leases.test.ts",
    "test/plugins/stores/postgres/rules.test.ts",
    "test/plugins/stores/postgres/unknown-outcomes.test.ts",
    "test/plugins/stores/transfer.test.ts",
  ],
} as const;

/**
 * The test files and folders of the commit and ci tiers that check the same laws as a nightly file,
 * with fewer cases or without processes. A nightly file is the complete proof of its laws and never
 * the only one. An empty list marks files that measure time or size.
 */
export const SOONER: Readonly<Record<string, readonly string[]>> = {
  "test/clients/mcp/agents.test.ts": [
    "test/clients/mcp/matrix.test.ts",
    "test/plugins/frontends/mcp/mcp.test.ts",
  ],
  "test/clients/mcp/python.test.ts": ["test/clients/mcp/matrix.test.ts"],
  "test/clients/mcp/servers.test.ts": ["test/clients/mcp/matrix.test.ts"],
  "test/e2e/ledger/mcp-kills.test.ts": ["test/e2e/ledger/mcp-kill.test.ts"],
  "test/clients/mcp/conformance.test.ts": [
    "test/plugins/frontends/mcp/mcp.test.ts",
    "test/plugins/frontends/mcp/events.test.ts",
  ],
  "test/bench/guard.test.ts": [],
  "test/unit/pipeline/virtual-connection.test.ts": [],
  "test/plugins/stores/postgres/minimal-store.test.ts": [
    "test/plugins/stores/conformance.test.ts",
    "test/plugins/stores/postgres/rules.test.ts",
  ],
  "test/plugins/stores/postgres/call-terms.test.ts": [
    "test/plugins/stores/postgres/rules.test.ts",
    "test/plugins/stores/postgres/rows.test.ts",
  ],
  "test/plugins/stores/postgres/failover/loss-report.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
  ],
  "test/cli/plugins/plugin-lock.test.ts": [
    "test/cli/plugins/plugin-add.test.ts",
    "test/unit/loader",
  ],
  "test/cli/plugins/plugin-commands.test.ts": [
    "test/cli/plugins/plugin-add.test.ts",
    "test/unit/loader",
  ],
  "test/e2e/plugins/isolated-socket.test.ts": [
    "test/e2e/plugins/isolated-plugins.test.ts",
    "test/unit/isolation",
  ],
  "test/examples/words-guard.test.ts": [
    "test/docs/examples.test.ts",
    "test/examples/mcp-relay.test.ts",
  ],
  "test/examples/pii-vault.test.ts": ["test/docs/examples.test.ts"],
  "test/examples/exact-cache.test.ts": ["test/docs/examples.test.ts"],
  "test/examples/remote-guard.test.ts": ["test/docs/examples.test.ts"],
  "test/examples/cost-routing.test.ts": ["test/docs/examples.test.ts"],
  "test/e2e/operations/embeddings.test.ts": ["test/e2e/operations/grid.test.ts"],
  "test/e2e/operations/model-kinds.test.ts": ["test/e2e/operations/grid.test.ts"],
  "test/e2e/operations/audio.test.ts": [
    "test/e2e/operations/grid.test.ts",
    "test/e2e/operations/uploads.test.ts",
  ],
  "test/e2e/sdk/langchain.test.ts": ["test/e2e/sdk/openai.test.ts"],
  "test/e2e/sdk/anthropic-0.test.ts": ["test/e2e/sdk/anthropic.test.ts"],
  "test/e2e/images/edits.test.ts": [
    "test/e2e/images/live.test.ts",
    "test/e2e/operations/grid.test.ts",
  ],
  "test/e2e/lifecycle/debugger.test.ts": ["test/e2e/lifecycle/draining.test.ts"],
  "test/plugins/edited-template.test.ts": ["test/plugins/templates.test.ts"],
  "test/cli/completion.test.ts": ["test/cli/help.test.ts"],
  "test/cli/plugins/check-plugin.test.ts": ["test/unit/testing", "test/plugins/templates.test.ts"],
  "test/clients/realtime/python.test.ts": ["test/clients/realtime/realtime.test.ts"],
  "test/clients/own-sign-in.test.ts": ["test/e2e/sign-in"],
  "test/clients/signed-in.test.ts": ["test/e2e/sign-in", "test/clients/clients.test.ts"],
  "test/clouds/conformance.test.ts": [
    "test/clouds/aws-laws.test.ts",
    "test/clouds/azure.test.ts",
    "test/clouds/vertex.test.ts",
  ],
  "test/clouds/money.test.ts": [
    "test/clouds/aws.test.ts",
    "test/clouds/azure.test.ts",
    "test/clouds/vertex.test.ts",
    "test/pipeline/metering",
  ],
  "test/e2e/admin/playground-code.test.ts": ["test/unit/console"],
  "test/e2e/ledger/price-feed-workers.test.ts": [
    "test/e2e/ledger/price-feed.test.ts",
    "test/unit/runtime/workers/crew.test.ts",
  ],
  "test/e2e/ledger/fleet.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
    "test/e2e/ledger/postgres.test.ts",
  ],
  "test/e2e/ledger/scope-first-calls.test.ts": [
    "test/rig/fleet/sim/first-calls.test.ts",
    "test/e2e/access/scopes.test.ts",
  ],
  "test/e2e/ledger/fleet-database-outage.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
    "test/e2e/ledger/hanging-store.test.ts",
  ],
  "test/e2e/ledger/fleet-disk-full.test.ts": [
    "test/plugins/stores/sqlite.test.ts",
    "test/e2e/ledger/hanging-store.test.ts",
  ],
  "test/e2e/ledger/fleet-key-revocation.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
    "test/e2e/lifecycle/websockets.test.ts",
    "test/e2e/lifecycle/workers.test.ts",
  ],
  "test/e2e/ledger/store-copy.test.ts": ["test/plugins/stores/conformance.test.ts"],
  "test/e2e/lifecycle/config-saves.test.ts": [
    "test/unit/runtime/reload",
    "test/e2e/lifecycle/reload.test.ts",
  ],
  "test/e2e/lifecycle/ended-generations.test.ts": ["test/e2e/lifecycle/reload.test.ts"],
  "test/e2e/lifecycle/starts-pairwise.test.ts": ["test/e2e/lifecycle/starts.test.ts"],
  "test/e2e/lifecycle/watchdog.test.ts": ["test/unit/runtime/event-loop-watchdog.test.ts"],
  "test/e2e/package/package.test.ts": [
    "test/docs/shipped.test.ts",
    "test/e2e/package/npm-start.test.ts",
  ],
  "test/e2e/package/readme.test.ts": ["test/docs/pages.test.ts"],
  "test/e2e/plugins/third-party.test.ts": [
    "test/e2e/plugins/third-party-audio.test.ts",
    "test/unit/loader",
  ],
  "test/e2e/sdk/hostile-upstream.test.ts": ["test/pipeline/hostile.test.ts"],
  "test/e2e/sdk/truncated-streams.test.ts": ["test/rig/connections/truncation.test.ts"],
  "test/kit/database/postgres.test.ts": ["test/e2e/ledger/postgres.test.ts"],
  "test/pipeline/goodput/goodput.test.ts": [
    "test/pipeline/routing/overload.test.ts",
    "test/pipeline/admission/gate.test.ts",
    "test/rig/routing/never-worse.test.ts",
  ],
  "test/plugins/recorded-conformance.test.ts": [
    "test/plugins/conformance.test.ts",
    "test/plugins/rows.test.ts",
    "test/plugins/templates.test.ts",
  ],
  "test/plugins/defects/defects.test.ts": ["test/unit/testing"],
  "test/plugins/stores/crash.test.ts": ["test/plugins/stores/sqlite.test.ts"],
  "test/plugins/stores/postgres/budgets/budget-leases.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
  ],
  "test/plugins/stores/postgres/contract.test.ts": [
    "test/plugins/stores/conformance.test.ts",
    "test/plugins/stores/postgres/rules.test.ts",
  ],
  "test/plugins/stores/postgres/failover/database-outage.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
  ],
  "test/plugins/stores/postgres/failover/failover.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
  ],
  "test/plugins/stores/postgres/failover/random-fleets.test.ts": [
    "test/rig/fleet/sim/fleet-sim.test.ts",
  ],
  "test/plugins/stores/postgres/pooler-and-latency.test.ts": [
    "test/plugins/stores/postgres/rules.test.ts",
  ],
  "test/plugins/stores/postgres/unknown-outcomes.test.ts": ["test/rig/fleet/sim/fleet-sim.test.ts"],
  "test/plugins/stores/transfer.test.ts": ["test/plugins/stores/conformance.test.ts"],
  "test/plugins/stores/postgres/retention.test.ts": [
    "test/plugins/stores/conformance.test.ts",
    "test/plugins/stores/archives.test.ts",
  ],
  "test/protocols/linear/linear.test.ts": ["test/protocols/linear"],
  "test/protocols/linear/places.test.ts": ["test/protocols/linear"],
  "test/rig/attack/attack.test.ts": ["test/e2e/protocols", "test/pipeline/admission/every.test.ts"],
  "test/rig/authoring/plugin-author.test.ts": [
    "test/cli/plugins/new.test.ts",
    "test/plugins/templates.test.ts",
  ],
  "test/rig/authoring/template.test.ts": [
    "test/cli/plugins/new.test.ts",
    "test/plugins/templates.test.ts",
  ],
  "test/rig/connections/client-disconnects.test.ts": [
    "test/pipeline/response/response-states.test.ts",
  ],
  "test/rig/connections/connection-races.test.ts": [
    "test/pipeline/upstream/connection-failures.test.ts",
  ],
  "test/rig/connections/slow-readers.test.ts": ["test/pipeline/hostile.test.ts"],
  "test/rig/drills/drills.test.ts": [
    "test/e2e/lifecycle/draining.test.ts",
    "test/e2e/observers/log-lines.test.ts",
  ],
  "test/rig/faults/faults.test.ts": ["test/pipeline/routing/provider-errors.test.ts"],
  "test/rig/fleet/fleet.test.ts": ["test/rig/fleet/sim/fleet-sim.test.ts"],
  "test/rig/fleet/sim/first-calls-mutants.test.ts": ["test/rig/fleet/sim/first-calls.test.ts"],
  "test/rig/fleet/sim/fleet-sim-mutants.test.ts": ["test/rig/fleet/sim/fleet-sim.test.ts"],
  "test/rig/fuzz/fuzz.test.ts": [
    "test/e2e/protocols/ambiguous-bodies.test.ts",
    "test/pipeline/form",
  ],
  "test/rig/ledger/crash.test.ts": [
    "test/e2e/lifecycle/websockets.test.ts",
    "test/e2e/lifecycle/workers.test.ts",
    "test/plugins/stores/sqlite.test.ts",
  ],
  "test/rig/ledger/ledger-size.test.ts": [],
  "test/rig/ledger/prune.test.ts": ["test/e2e/ledger/retention.test.ts"],
  "test/rig/lifecycle/clock.test.ts": ["test/plugins/stores/model-comparison.test.ts"],
  "test/rig/lifecycle/restart.test.ts": ["test/e2e/lifecycle/draining.test.ts"],
  "test/rig/lifecycle/upgrade.test.ts": ["test/e2e/lifecycle/socket-activation.test.ts"],
  "test/rig/lifecycle/zero-downtime.test.ts": [
    "test/e2e/lifecycle/draining.test.ts",
    "test/e2e/lifecycle/listeners.test.ts",
  ],
  "test/rig/sockets/socket-mutants.test.ts": [
    "test/rig/sockets/sockets.test.ts",
    "test/e2e/sockets",
  ],
  "test/rig/load/overload.test.ts": [
    "test/pipeline/routing/overload.test.ts",
    "test/pipeline/admission/gate.test.ts",
  ],
  "test/rig/load/soak.test.ts": [
    "test/e2e/lifecycle/idle-sockets.test.ts",
    "test/e2e/lifecycle/finished-requests.test.ts",
  ],
  "test/e2e/jobs/provider-batches.test.ts": [
    "test/e2e/jobs/batches.test.ts",
    "test/plugins/batches",
    "test/clouds/batches.test.ts",
  ],
  "test/e2e/jobs/background-crash.test.ts": ["test/plugins/background"],
  "test/e2e/jobs/gateway-lines-crash.test.ts": [
    "test/plugins/jobs/direct-lines.test.ts",
    "test/e2e/jobs/gateway-lines.test.ts",
  ],
  "test/clients/python/jobs.test.ts": ["test/e2e/jobs/gateway-lines.test.ts"],
  "test/rig/money/batches.test.ts": [
    "test/e2e/jobs",
    "test/unit/pipeline/job-line-errors.test.ts",
    "test/plugins/stores/job-model.test.ts",
  ],
  "test/rig/money/batch-crashes.test.ts": ["test/plugins/jobs/batch-engine-law.test.ts"],
  "test/rig/money/budget.test.ts": [
    "test/e2e/lifecycle/websockets.test.ts",
    "test/e2e/lifecycle/workers.test.ts",
    "test/plugins/stores/conformance.test.ts",
  ],
  "test/rig/observers/access-log.test.ts": ["test/e2e/observers/access-log.test.ts"],
  "test/rig/observers/alerts.test.ts": ["test/e2e/observers/alerts.test.ts"],
  "test/rig/observers/metrics.test.ts": ["test/e2e/observers/metrics.test.ts"],
  "test/rig/observers/traces.test.ts": ["test/e2e/observers/traces.test.ts"],
  "test/rig/plugins/plugins.test.ts": ["test/pipeline/hooks"],
  "test/rig/privacy/canary.test.ts": ["test/pipeline/privacy", "test/e2e/access/zdr.test.ts"],
  "test/rig/privacy/client-canary.test.ts": ["test/e2e/access/client-credentials.test.ts"],
  "test/rig/privacy/zdr.test.ts": ["test/pipeline/privacy", "test/e2e/access/zdr.test.ts"],
  "test/rig/routing/affinity.test.ts": ["test/pipeline/routing/sticky-conversations.test.ts"],
  "test/rig/routing/failover.test.ts": [
    "test/pipeline/routing/attempts.test.ts",
    "test/pipeline/routing/retries.test.ts",
  ],
  "test/rig/routing/retry-storm.test.ts": ["test/pipeline/routing/retries.test.ts"],
  "test/unit/runtime/workers/lent-store.test.ts": ["test/unit/runtime/workers"],
  "test/unit/testing/conformance.test.ts": ["test/unit/testing"],
};
