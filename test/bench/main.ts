// `npm run bench`: measures the cost of the gateway in ratios to a proxy that does nothing, in one
// run on one machine.
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { once } from "node:events";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { aims, dearer } from "./aims.ts";
import { isLane } from "./lanes.ts";
import { plot } from "./plot.ts";
import { ended, pinned, run, serving } from "./process.ts";
import { median } from "./rounds.ts";
import { type Found, stepsOf } from "./steps.ts";
import { aimTable, table, workTable } from "./table.ts";
import { collecting } from "./targets.ts";
import { isWatched, where } from "./where.ts";

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    where: { type: "boolean", default: false },
    watched: { type: "boolean", default: false },
    peer: { type: "boolean", default: false },
    peers: { type: "string" },
    before: { type: "string" },
    "fail-above": { type: "string" },
    url: { type: "string", multiple: true, default: [] },
    lane: { type: "string", multiple: true },
    rounds: { type: "string" },
    out: { type: "string", default: join(import.meta.dirname, "out") },
    help: { type: "boolean", short: "h", default: false },
  },
});
const { quick } = given;
const against = given.before !== undefined;
const rounds = Number(given.rounds ?? (against ? 61 : quick ? 3 : 5));
/** Two similar programs differ less than two rounds do, so there are many short rounds. */
const short = against ? { ms: 300, events: 30 } : { ms: 800, events: 30 };
const steps = stepsOf({
  quick,
  peer: given.peer,
  peers: given.peers,
  urls: given.url,
  before: given.before,
  rounds,
  given: given.rounds !== undefined,
  length: quick || against ? short : { ms: 1_800, events: 60 },
  // Both programs run for a long time before the comparison, because the one with more code is
  // compiled later.
  warmMs: quick && !against ? 2_500 : 12_000,
});
const say = (text: string) => process.stderr.write(`${text}\n`);

const HELP = `npm run bench -- [options]

  --quick          a few minutes: shorter loads, fewer rounds, smaller growth
  --peer           also Portkey and LiteLLM, which are installed into temporary folders
  --peers <folder> also gateways of a folder of start scripts: each executable file is started with a port and the URL of
                   the simulated OpenAI API, prints one line of JSON (path, headers, prefix, ready, allProtocols,
                   mostStreams, checks, records; all optional), and becomes the gateway. docs/concepts/performance.md
                   has an example
  --url <address>  also whatever answers there, any number of times; TOLLGATE_BENCH_KEY is its bearer, and
                   TOLLGATE_BENCH_PREFIX stands before the names of models
  --before <folder>
                   another checkout, with its dependencies: its lanes and ours beside each other in many short rounds,
                   and nothing else
  --fail-above <n> with --before: fails if a lane costs over <n> percent more CPU than before
  --lane <name>    only this one, any number of times:
                   ${steps.all.map(({ name }) => name).join(", ")}
  --where          where the time of one request goes, of the lane that is named or of json-1k: by thread, file and
                   function, bytes and promises; and nothing else
  --watched        what observers take of a request, by themselves: in one process, in short turns, which a busy machine
                   changes little; and nothing else
  --rounds <n>     of which the medians are told
  --out <folder>   for raw.json, table.md and plot.svg; test/bench/out when absent
  --help

"npm run build" comes before it: start and idle memory are those of dist/. The machine should have nothing else to do.`;

/** Duration of a commit's flush, in microseconds. */
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

/**
 * Runs all steps, and reports the duration of each. A failed step is reported, and the others run.
 */
async function measured(): Promise<{ found: Found; took: Record<string, number> }> {
  const mock = await serving("mock.ts", [], 1);
  const driver = run([join(import.meta.dirname, "load.ts")], 1);
  const found: Found = { results: [], described: new Map(), grown: [] };
  const took: Record<string, number> = {};
  const wanted = steps.all.filter(({ name }) => given.lane?.includes(name) ?? true);
  try {
    for (const [i, step] of wanted.entries()) {
      const began = performance.now();
      say(`${i + 1}/${wanted.length} ${step.name}: ${step.about}`);
      try {
        await step.run({ driver, mock }, found);
      } catch (error) {
        say(`${step.name} failed: ${error instanceof Error ? error.message : String(error)}`);
        process.exitCode = 1;
      }
      took[step.name] = Math.round((performance.now() - began) / 1000);
    }
  } finally {
    await steps.stop();
    driver.disconnect();
    mock.child.disconnect();
    await Promise.all([ended(driver), ended(mock.child)]);
  }
  return { found, took };
}

async function main(): Promise<void> {
  const [began, load] = [performance.now(), loadavg()[0]!];
  const { found, took } = await measured();
  const fsyncUs = fsync();
  const facts = {
    at: new Date().toISOString(),
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    pinned,
    rounds,
    loadBefore: load,
    fsyncUs,
    seconds: Math.round((performance.now() - began) / 1000),
    took,
  };
  const reached = aims(found, fsyncUs);
  const text = [
    `Node ${facts.node}, ${facts.cores} × ${facts.cpu}, ${pinned}. Medians of ${rounds} interleaved rounds; the machine's load before it was ${load.toFixed(1)}; one fdatasync takes ${Math.round(fsyncUs)} µs here.\n`,
    aimTable(reached),
    workTable(found.described),
    table(found.results),
  ].join("\n");
  mkdirSync(given.out, { recursive: true });
  const write = (name: string, what: string) => writeFileSync(join(given.out, name), what);
  write(
    "raw.json",
    `${JSON.stringify({ facts, aims: reached, ...found, described: [...found.described.keys()] }, null, 1)}\n`,
  );
  write("table.md", text);
  if (found.results.length > 0) write("plot.svg", plot(found.results));
  process.stdout.write(text);
  for (const { lane, percent } of dearer(found.results, Number(given["fail-above"] ?? Infinity))) {
    say(`${lane} costs ${percent.toFixed(1)} % more CPU than before.`);
    process.exitCode = 1;
  }
  say(`\n${facts.seconds} s; raw.json, table.md and plot.svg are in ${given.out}`);
}

const unknown = given.lane?.find((name) => !steps.all.some((step) => step.name === name));
if (given.help) process.stdout.write(`${HELP}\n`);
else if (unknown !== undefined) {
  say(`There is no lane "${unknown}".\n\n${HELP}`);
  process.exitCode = 1;
} else if (given.where) {
  const [name = "json-1k"] = given.lane ?? [];
  if (isLane(name, short) || isWatched(name)) process.stdout.write(await where(name));
  else {
    say(`--where looks at a lane of one gateway, and "${name}" has several or none.`);
    process.exitCode = 1;
  }
} else if (given.watched) {
  const sink = await collecting();
  const file = join(import.meta.dirname, "watching.ts");
  const child = run(["--conditions=tollgate-source", file, sink.url], 0);
  [process.exitCode] = (await once(child, "exit")) as [number];
  sink.stop();
} else await main();
