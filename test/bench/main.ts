// `npm run bench`: what the gateway costs, in ratios to what a proxy costs that does nothing, in one run on one machine.
//     --quick              a few minutes: shorter loads, fewer rounds, smaller growth
//     --lane name          only that one; may be given several times
//     --durability a,b     power,process,relaxed when absent
//     --peer               also a peer gateway, which is installed into a temporary folder
//     --url address        also whatever answers there
//     --rounds n
//     --out folder         raw.json, table.md and plot.svg; test/bench/out when absent
import {
  fdatasyncSync,
  mkdirSync,
  openSync,
  writeFileSync,
  writeSync,
  closeSync,
  rmSync,
} from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { growth } from "./growth.ts";
import { lanes } from "./lanes.ts";
import { plot } from "./plot.ts";
import { ended, pinned, run, serving } from "./process.ts";
import { measure, median, sample, type Result } from "./rounds.ts";
import { begun } from "./start.ts";
import { table, verdicts } from "./table.ts";
import { bare, direct, elsewhere, peer, tollgate, type Target } from "./targets.ts";

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    lane: { type: "string", multiple: true },
    durability: { type: "string", default: "power,process,relaxed" },
    peer: { type: "boolean", default: false },
    url: { type: "string", multiple: true, default: [] },
    rounds: { type: "string" },
    out: { type: "string", default: join(import.meta.dirname, "out") },
  },
});
const rounds = Number(given.rounds ?? (given.quick ? 3 : 5));
const WARM_MS = 6_000;
const share = given.quick ? 0.5 : 1;
const wanted = (name: string) => given.lane?.includes(name) ?? true;
const say = (text: string) => process.stderr.write(`${text}\n`);

/** What a commit waits for here. */
function fsync(): number {
  const file = join(tmpdir(), `tollgate-bench-sync-${process.pid}`);
  const fd = openSync(file, "w");
  const page = Buffer.alloc(4096, 1);
  const took = Array.from({ length: 100 }, () => {
    writeSync(fd, page);
    const began = performance.now();
    fdatasyncSync(fd);
    return (performance.now() - began) * 1000;
  });
  closeSync(fd);
  rmSync(file);
  return median(took);
}

async function main(): Promise<void> {
  const mock = await serving("mock.ts", [], 1);
  const driver = run([join(import.meta.dirname, "load.ts")], 1);
  const targets: Target[] = [];
  const results: Result[] = [];
  try {
    targets.push(await bare("agent", mock.port), await bare("dispatch", mock.port));
    for (const durability of given.durability.split(","))
      targets.push(await tollgate(mock.port, { durability }));
    if (given.peer) targets.push(await peer(mock.port));
    targets.push(...given.url.map(elsewhere));
    // Compilers learn for some ten thousand requests; a lane's own warming only reminds them.
    const [first] = lanes(share);
    for (const target of targets) await sample(driver, { ...first!, ms: WARM_MS }, target);
    for (const lane of lanes(share)) {
      if (!wanted(lane.name)) continue;
      say(`${lane.name}: ${lane.about}`);
      const here = targets.filter((t) => lane.only?.includes(t.name) ?? true);
      if (lane.direct) here.unshift(direct(mock));
      results.push(...(await measure(driver, lane, here, rounds)));
    }
    for (const target of targets.splice(0)) await target.stop();
    const grown = wanted("growth") ? await growth(driver, mock.port, given.quick, rounds) : [];
    const start = wanted("start") ? await begun(mock.port, given.quick ? 3 : 7) : undefined;
    const facts = {
      at: new Date().toISOString(),
      node: process.version,
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      pinned,
      rounds,
      fsyncUs: fsync(),
    };
    const text = [
      `Node ${facts.node}, ${facts.cores} × ${facts.cpu}, ${pinned}, medians of ${rounds} interleaved rounds, one fdatasync ${Math.round(facts.fsyncUs)} µs.\n`,
      table(results),
      verdicts({ results, grown, start, fsyncUs: facts.fsyncUs }),
    ].join("\n");
    mkdirSync(given.out, { recursive: true });
    writeFileSync(
      join(given.out, "raw.json"),
      `${JSON.stringify({ facts, results, grown, start }, null, 1)}\n`,
    );
    writeFileSync(join(given.out, "table.md"), text);
    if (results.length > 0) writeFileSync(join(given.out, "plot.svg"), plot(results));
    process.stdout.write(text);
  } finally {
    for (const target of targets) await target.stop();
    driver.disconnect();
    mock.child.disconnect();
    await Promise.all([ended(driver), ended(mock.child)]);
  }
}

await main();
