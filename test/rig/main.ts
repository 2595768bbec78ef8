// `npm run rig <name> -- --option value`: the long forms, started manually. The short forms are the
// tests next to each rig.
import { formatResult, parseRigOptions, type Rig } from "./rig.ts";

const RIGS: Readonly<Record<string, () => Promise<{ readonly rig: Rig }>>> = {
  alerts: () => import("./observers/alerts.ts"),
  "retry-storm": () => import("./routing/retry-storm.ts"),
  failover: () => import("./routing/failover.ts"),
  goodput: () => import("./routing/goodput.ts"),
  "never-worse": () => import("./routing/never-worse.ts"),
  fleet: () => import("./fleet/fleet.ts"),
  "fleet-outage": () => import("./fleet/fleet-outage.ts"),
  "fleet-budget": () => import("./fleet/fleet-budget.ts"),
  "fleet-settlement": () => import("./fleet/fleet-settlement.ts"),
  "fleet-figures": () => import("./fleet/figures/fleet-figures.ts"),
  "fleet-apply-batch": () => import("./fleet/fleet-apply-batch.ts"),
  "fleet-hot-budget": () => import("./fleet/fleet-hot-budget.ts"),
  "fleet-mutants": () => import("./fleet/fleet-mutants.ts"),
  "fleet-rolling-update": () => import("./fleet/fleet-rolling-update.ts"),
  "fleet-worlds": () => import("./fleet/fleet-worlds.ts"),
  "first-calls": () => import("./fleet/sim/first-calls.ts"),
  "fleet-sim": () => import("./fleet/sim/fleet-sim.ts"),
  "fleet-size": () => import("./fleet/fleet-size.ts"),
  "fleet-model": () => import("./fleet/fleet-model.ts"),
  "fleet-meter-cost": () => import("./fleet/fleet-meter-cost.ts"),
  affinity: () => import("./routing/affinity.ts"),
  crash: () => import("./ledger/crash.ts"),
  budget: () => import("./money/budget.ts"),
  batches: () => import("./money/batches.ts"),
  "batch-memory": () => import("./money/batch-memory.ts"),
  "batch-crashes": () => import("./money/batch-crashes.ts"),
  reservations: () => import("./money/reservations.ts"),
  usage: () => import("./money/usage.ts"),
  "client-disconnects": () => import("./connections/client-disconnects.ts"),
  plugins: () => import("./plugins/plugins.ts"),
  "connection-races": () => import("./connections/connection-races.ts"),
  truncation: () => import("./connections/truncation.ts"),
  soak: () => import("./load/soak.ts"),
  zdr: () => import("./privacy/zdr.ts"),
  attack: () => import("./attack/attack.ts"),
  canary: () => import("./privacy/canary.ts"),
  "ledger-size": () => import("./ledger/ledger-size.ts"),
  consoles: () => import("./ledger/consoles.ts"),
  linear: () => import("./load/linear.ts"),
  prune: () => import("./ledger/prune.ts"),
  restart: () => import("./lifecycle/restart.ts"),
  "zero-downtime": () => import("./lifecycle/zero-downtime.ts"),
  upgrade: () => import("./lifecycle/upgrade.ts"),
  overload: () => import("./load/overload.ts"),
  faults: () => import("./faults/faults.ts"),
  fuzz: () => import("./fuzz/fuzz.ts"),
  sockets: () => import("./sockets/sockets.ts"),
  "realtime-relay": () => import("./sockets/realtime-relay.ts"),
  "slow-readers": () => import("./connections/slow-readers.ts"),
  clock: () => import("./lifecycle/clock.ts"),
  traces: () => import("./observers/traces.ts"),
  metrics: () => import("./observers/metrics.ts"),
  drills: () => import("./drills/drills.ts"),
  template: () => import("./authoring/template.ts"),
  "plugin-author": () => import("./authoring/plugin-author.ts"),
  "access-log": () => import("./observers/access-log.ts"),
  tutorial: () => import("./package/tutorial.ts"),
  tarball: () => import("./package/tarball.ts"),
};

const [name = "", ...argv] = process.argv.slice(2);
const load = Object.hasOwn(RIGS, name) ? RIGS[name] : undefined;
if (!load) {
  const usage = `Usage: npm run rig <${Object.keys(RIGS).join("|")}> -- [options]`;
  const isHelp = name === "" || name === "--help";
  (isHelp ? console.log : console.error)(isHelp ? usage : `Unknown rig: ${name}\n${usage}`);
  process.exit(isHelp ? 0 : 2);
}
const { rig } = await load();
if (argv.includes("--help")) {
  console.log(`Usage: npm run rig ${name} -- [options]\n\nOptions and their defaults:`);
  for (const [option, value] of Object.entries(rig.options)) console.log(`  --${option}  ${value}`);
  process.exit(0);
}
const verdict = await rig.run(
  parseRigOptions(
    rig,
    argv.filter((word) => word !== "--"),
  ),
  (line) => console.log(line),
);
for (const line of verdict.wrong.slice(0, 50)) console.log(`  wrong: ${line}`);
console.log(formatResult(name, verdict));
process.exit(verdict.wrong.length === 0 ? 0 : 1);
