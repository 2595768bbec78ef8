// `npm run rig <name> -- --option value`: the long forms, by hand. The short ones are the tests beside this file.
import { formatResult, parseRigOptions, type Rig } from "./rig.ts";

const RIGS: Readonly<Record<string, () => Promise<{ readonly rig: Rig }>>> = {
  alerts: () => import("./alerts.ts"),
  storm: () => import("./retry-storm.ts"),
  failover: () => import("./failover.ts"),
  goodput: () => import("./goodput.ts"),
  "never-worse": () => import("./never-worse.ts"),
  fleet: () => import("./fleet.ts"),
  "fleet-away": () => import("./fleet-outage.ts"),
  "fleet-budget": () => import("./fleet-budget.ts"),
  "fleet-ends": () => import("./fleet-settlement.ts"),
  "fleet-figures": () => import("./fleet-figures.ts"),
  "fleet-gate": () => import("./fleet-apply-batch.ts"),
  "fleet-hot": () => import("./fleet-hot-budget.ts"),
  "fleet-mutants": () => import("./fleet-mutants.ts"),
  "fleet-roll": () => import("./fleet-rolling-update.ts"),
  "fleet-worlds": () => import("./fleet-worlds.ts"),
  "fleet-sim": () => import("./fleet-sim.ts"),
  "fleet-size": () => import("./fleet-size.ts"),
  "fleet-model": () => import("./fleet-model.ts"),
  "fleet-row": () => import("./fleet-meter-cost.ts"),
  affinity: () => import("./affinity.ts"),
  crash: () => import("./crash.ts"),
  budget: () => import("./budget.ts"),
  holds: () => import("./reservations.ts"),
  usage: () => import("./usage.ts"),
  hangups: () => import("./client-disconnects.ts"),
  plugins: () => import("./plugins.ts"),
  races: () => import("./connection-races.ts"),
  cuts: () => import("./truncation.ts"),
  soak: () => import("./soak.ts"),
  zdr: () => import("./zdr.ts"),
  attack: () => import("./attack.ts"),
  canary: () => import("./canary.ts"),
  "ledger-size": () => import("./ledger-size.ts"),
  consoles: () => import("./consoles.ts"),
  linear: () => import("./linear.ts"),
  prune: () => import("./prune.ts"),
  restart: () => import("./restart.ts"),
  unbroken: () => import("./zero-downtime.ts"),
  upgrade: () => import("./upgrade.ts"),
  overload: () => import("./overload.ts"),
  faults: () => import("./faults.ts"),
  fuzz: () => import("./fuzz.ts"),
  readers: () => import("./slow-readers.ts"),
  clock: () => import("./clock.ts"),
  traces: () => import("./traces.ts"),
  metrics: () => import("./metrics.ts"),
  drills: () => import("./drills.ts"),
  template: () => import("./template.ts"),
  author: () => import("./plugin-author.ts"),
  "access-log": () => import("./access-log.ts"),
  hour: () => import("./tutorial.ts"),
  tarball: () => import("./tarball.ts"),
};

const [name = "", ...argv] = process.argv.slice(2);
const load = Object.hasOwn(RIGS, name) ? RIGS[name] : undefined;
if (!load) {
  console.error(`Usage: npm run rig <${Object.keys(RIGS).join("|")}> -- [options]`);
  process.exit(2);
}
const { rig } = await load();
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
