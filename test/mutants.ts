// Plants random defects in the source, one at a time, and runs the tests that can detect each. Prints
// which tier finds each, and a table that shows whether the tests of the commit tier are strict enough.
//
//     npm run mutants -- --seed 3 --count 50
//     … -- --only 7,12             only these of the draw
//     … -- --tier nightly          a defect that the commit tier does not find is given to the ci tier, then to the nightly one
//     … -- --tests test/a.test.ts  only these test files
//     … -- --cpu 120               the most processor seconds for one defect in each tier (default 60)
//     … -- --least 0.6             fails if the commit tier finds a smaller share
//     … -- --through "taskset 1"   starts each run of tests through this command (default nice -n 10)
//
// A file is drawn by its lines, then an operator, then a place. Test files run in the order of their distance in the import graph
// (nearer if their paths share words), then of their cost. The nightly tier also repeats, in full, the test files of the other tiers
// that try a part of a law (`kit/law-effort.ts`). A defect that no test file finds within its time has survived. It is either without
// effect, or a law is missing.
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { parseArgs } from "node:util";
import { createSeededRandom } from "../src/testing/random.ts";
import { sources } from "./affected.ts";
import { importers, importGraph } from "./layers.ts";
import { mutated, mutationsIn, type Mutation } from "./mutations.ts";
import { ALONE, CI, NIGHTLY, TIERS, type Tier } from "./tiers.ts";

const root = new URL("..", import.meta.url).pathname;
const { values: options } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.floor(Date.now() / 1000) % 1_000_000) },
    count: { type: "string", default: "50" },
    only: { type: "string", default: "" },
    tier: { type: "string", default: "commit" },
    tests: { type: "string", default: "" },
    cpu: { type: "string", default: "60" },
    least: { type: "string", default: "0" },
    through: { type: "string", default: "nice -n 10" },
  },
});

/** Test files run in groups of this much processor time, smaller groups first. */
const GROUP_SECONDS = [4, 12, 30];
/** A group of test files that takes longer hangs, which is a finding. */
const HANGS_MS = 300_000;

interface Mutant extends Mutation {
  readonly file: string;
}

const seed = Number(options.seed);
const files = sources("src", "plugins");
const costs: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(root, "test/costs.json"), "utf8"),
);
const graph = importGraph(new Map([...files, ...sources("test")]));
// A test that starts the program sees all that the program imports.
graph.get("test/kit/process/program.ts")!.push("src/cli/bin.ts");
// This test renders pages that it imports by their names.
const pages = [...files.keys()].filter((file) => file.includes("/console/web/pages/"));
graph.get("test/unit/console/pages.test.ts")!.push(...pages);
const seenBy = importers(graph);
const scratch = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
process.on("exit", removeScratch);
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));
makeScratch();

const chosen = options.tests.split(",").filter(Boolean);
const only = new Set(options.only.split(",").filter(Boolean).map(Number));
const finders = new Set<string>();
const survived: string[] = [];
const found = new Map<Tier, number>(TIERS.map((tier) => [tier, 0]));
console.log(`seed ${seed}`);
for (const [at, mutant] of drawn(Number(options.count)).entries()) {
  if (only.size > 0 && !only.has(at + 1)) continue;
  const before = processorSeconds();
  const { tier, by } = await finderOf(mutant);
  const result = tier === undefined ? `survived ${by}` : `found by ${tier}: ${by}`;
  const line = `${String(at + 1).padStart(3)}  ${shown(mutant)}\n     ${result} (${(processorSeconds() - before).toFixed(0)} s)`;
  console.log(line);
  if (tier === undefined) survived.push(line);
  else found.set(tier, found.get(tier)! + 1);
}
await checkFinders();
if (survived.length > 0) console.log(`\nsurvived:\n${survived.join("\n")}`);
const all = survived.length + [...found.values()].reduce((sum, many) => sum + many, 0);
const columns = [["seed", seed], ["mutants", all], ...found, ["none", survived.length]] as const;
const row = (of: 0 | 1) => columns.map((column) => String(column[of]).padStart(9)).join("");
console.log(`\n${row(0)}\n${row(1)}\n\n${processorSeconds().toFixed(0)} s of processor time`);
const isEnough = found.get("commit")! >= Number(options.least) * all;
console.log(`${isEnough ? 1 : 0} passed, ${isEnough ? 0 : 1} failed`);
process.exitCode = isEnough ? 0 : 1;

function drawn(count: number): Mutant[] {
  const next = createSeededRandom(seed);
  const below = (n: number) => Math.floor(next() * n);
  const names = [...files.keys()].sort();
  const lines = names.map((name) => files.get(name)!.split("\n").length);
  const sum = lines.reduce((all, many) => all + many, 0);
  const all: Mutant[] = [];
  while (all.length < count) {
    let line = below(sum);
    const file = names[lines.findIndex((many) => (line -= many) < 0)]!;
    const places = mutationsIn(files.get(file)!, file);
    const operators = [...new Set(places.map(({ operator }) => operator))];
    if (operators.length === 0) continue;
    const operator = operators[below(operators.length)]!;
    const fitting = places.filter((place) => place.operator === operator);
    all.push({ ...fitting[below(fitting.length)]!, file });
  }
  return all;
}

function shown(mutant: Mutant): string {
  const source = files.get(mutant.file)!;
  const line = source.slice(0, mutant.start).split("\n").length;
  const change = mutated(source, mutant).split("\n")[line - 1]!.trim();
  return `${mutant.file}:${line}  ${mutant.operator}: ${change}`;
}

interface Finder {
  /** The lowest tier that finds the mutant. Undefined if none does. */
  readonly tier?: Tier | undefined;
  /** What finds it, or how it survived. */
  readonly by: string;
}

async function finderOf(mutant: Mutant): Promise<Finder> {
  const path = join(scratch, mutant.file);
  const source = files.get(mutant.file)!;
  writeFileSync(path, mutated(source, mutant));
  try {
    let by = "";
    for (const tier of TIERS.slice(0, TIERS.indexOf(options.tier as Tier) + 1)) {
      const ended = await finderIn(tier, testsOf(mutant.file, tier));
      if (ended.tier !== undefined) return ended;
      if (tier === "commit" && chosen.length === 0 && (await breaksTypes(mutant.file)))
        return { tier, by: "tsc" };
      by += `${by && "; "}${tier}: ${ended.by}`;
    }
    return { by };
  } finally {
    writeFileSync(path, source);
  }
}

/** Runs the test files of one tier until one fails or the time is over. */
async function finderIn(tier: Tier, tests: readonly string[]): Promise<Finder> {
  const began = processorSeconds();
  for (const group of groups(tests)) {
    const left = Number(options.cpu) - (processorSeconds() - began);
    if (left <= 0) return { by: `out of time before ${group[0]}` };
    const by = await failing(tier, group, left);
    if (by === "time") return { by: `out of time in ${group[0]}` };
    if (by === undefined) continue;
    finders.add(by);
    return { tier, by };
  }
  return { by: `all ${tests.length} test files` };
}

/** Test files of a tier that can see a source file, nearest first. */
function testsOf(file: string, tier: Tier): string[] {
  const reached = new Map([[file, 0]]);
  for (const [at, distance] of reached)
    for (const importer of seenBy.get(at) ?? [])
      if (!reached.has(importer)) reached.set(importer, distance + 1);
  const cost = (test: string) => costs[test] ?? 5;
  return [...reached]
    .filter(([test]) => test.endsWith(".test.ts"))
    .filter(([test]) => (chosen.length > 0 ? chosen.includes(test) : isIn(tier, test)))
    .filter(([test]) => !/^test\/(mutations|run)\.test/.test(test))
    .map(([test, distance]) => [test, distance - 2 * shared(test, file)] as const)
    .sort(([a, near], [b, far]) => near - far || cost(a) - cost(b))
    .map(([test]) => test);
}

/** Whether a test file finds more in this tier than in a lower one. */
function isIn(tier: Tier, test: string): boolean {
  if (ALONE.includes(test)) return false;
  const isNightly = test in NIGHTLY;
  if (tier === "nightly")
    return isNightly || (graph.get(test) ?? []).includes("test/kit/law-effort.ts");
  return !isNightly && CI.includes(test) === (tier === "ci");
}

/** How many words of two paths are the same. */
function shared(one: string, other: string): number {
  const words = other.split(/\W+/).filter((word) => word.length > 2);
  return new Set(one.split(/\W+/).filter((word) => words.includes(word))).size;
}

function groups(tests: readonly string[]): string[][] {
  const made: string[][] = [];
  let seconds = Infinity;
  for (const test of tests) {
    const most = GROUP_SECONDS[Math.min(made.length - 1, GROUP_SECONDS.length - 1)] ?? 0;
    if (seconds >= most) {
      made.push([]);
      seconds = 0;
    }
    made.at(-1)!.push(test);
    seconds += costs[test] ?? 5;
  }
  return made;
}

/** The first of these files that fails, or undefined. "time": the limit ended it. */
async function failing(
  tier: Tier,
  tests: readonly string[],
  seconds: number,
): Promise<string | undefined> {
  const limit = Math.ceil(seconds) + 20;
  const { code, output } = await ran(
    `ulimit -t ${limit}; exec vitest run --config=test/vitest.config.ts --maxWorkers=1 --bail=1 ${tests.join(" ")}`,
    { TOLLGATE_TIER: tier },
  );
  if (code === 0) return undefined;
  if (code === undefined) return `${tests[0]} (hangs)`;
  const failed = /FAIL +(?:\|?\w+\|? +)?(test\/\S+\.test\.ts)/.exec(output)?.[1];
  if (failed !== undefined) return failed;
  // A worker that the limit of processor time ends has found nothing, unless these files take far less time without a defect.
  const usual = tests.reduce((sum, test) => sum + (costs[test] ?? 5), 0);
  return usual * 3 > limit ? "time" : `${tests[0]} (ends without a result)`;
}

/** The first check of the scratch folder takes longest; the others check what has changed. */
async function breaksTypes(file: string): Promise<boolean> {
  const web = "plugins/observers/console/web";
  const projects = [".", ...(file.startsWith(web) ? [web] : [])];
  for (const [at, project] of projects.entries()) {
    const { code } = await ran(
      `exec tsc -p ${project} --pretty false --incremental --tsBuildInfoFile .types-${at}`,
      {},
    );
    if (code !== 0) return true;
  }
  return false;
}

/** Each file that found a mutant passes without one. */
async function checkFinders(): Promise<void> {
  const names = [...finders].filter((name) => !name.includes(" "));
  if (names.length === 0) return;
  const { code, output } = await ran(
    `exec vitest run --config=test/vitest.config.ts --maxWorkers=1 ${names.join(" ")}`,
    { TOLLGATE_TIER: options.tier },
  );
  const failed = [...output.matchAll(/FAIL +(?:\|?\w+\|? +)?(test\/\S+\.test\.ts)/g)].map(
    ([, name]) => name,
  );
  if (code !== 0)
    console.log(`\nnot reliable, fails without a mutant too: ${[...new Set(failed)].join(", ")}`);
}

function ran(
  command: string,
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | undefined; output: string }> {
  const { TOLLGATE_TESTS: _, TOLLGATE_TEST_COSTS: __, FORCE_COLOR: ___, ...rest } = process.env;
  const bin = join(root, "node_modules/.bin");
  return new Promise((resolve) => {
    const [through, ...more] = options.through.split(" ") as [string, ...string[]];
    const child = spawn(through, [...more, "bash", "-c", command], {
      cwd: scratch,
      detached: true,
      env: { ...rest, ...env, NO_COLOR: "1", PATH: `${bin}${delimiter}${rest["PATH"]}` },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const parts: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => void parts.push(part));
    const kill = () => void process.kill(-child.pid!, "SIGKILL");
    let hangs = false;
    let timer: NodeJS.Timeout | undefined;
    // A command of `--through` can wait before it starts the tests, which then print a line.
    child.stdout.once("data", () => {
      timer = setTimeout(() => {
        hangs = true;
        kill();
      }, HANGS_MS);
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: hangs ? undefined : (code ?? 1), output: Buffer.concat(parts).toString() });
    });
  });
}

/** Processor time of all that this program has run so far. */
function processorSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** A copy of the working tree. Its dependencies are links, but for those that lead into the tree itself. */
function makeScratch(): void {
  const names = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    { cwd: root, encoding: "utf8" },
  )
    .split("\0")
    .filter((name) => name !== "" && existsSync(join(root, name)));
  execFileSync("cp", ["--parents", "-P", "-t", scratch, ...names], { cwd: root });
  linkModules("node_modules");
  for (const kind of readdirSync(join(root, "plugins"), { withFileTypes: true }))
    if (kind.isDirectory())
      for (const name of readdirSync(join(root, "plugins", kind.name)))
        linkModules(join("plugins", kind.name, name, "node_modules"));
}

function linkModules(folder: string): void {
  if (!existsSync(join(root, folder))) return;
  mkdirSync(join(scratch, folder), { recursive: true });
  for (const name of readdirSync(join(root, folder))) {
    const from = join(root, folder, name);
    if (name === ".cache") continue;
    symlinkSync(
      lstatSync(from).isSymbolicLink() ? readlinkSync(from) : from,
      join(scratch, folder, name),
    );
  }
}

function removeScratch(): void {
  rmSync(scratch, { recursive: true, force: true });
}
