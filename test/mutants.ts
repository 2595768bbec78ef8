// Plants random defects in the source, one at a time, and runs the tests that can detect each. It
// shows whether the tests of the commit tier are strict enough.
//
//     npm run mutants -- --seed 3 --count 50
//     … -- --only 7,12             only these of the draw
//     … -- --tier nightly          if the commit tier does not find a defect, also the ci and nightly files
//     … -- --tests test/a.test.ts  only these test files
//     … -- --cpu 120               the most processor seconds for one defect (default 60)
//     … -- --least 0.6             fails if a smaller share is found
//
// It draws a file by its number of lines, then an operator, then a place. Test files run in the
// order of their distance in the import graph (nearer if their paths share words), then of their
// cost. A defect that no test file finds in time has survived: it has no effect, or a test is
// missing.
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
import { ALONE, CI, NIGHTLY } from "./tiers.ts";

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
  },
});

/** Test files run in groups of this much processor time, smaller groups first. */
const GROUP_SECONDS = [4, 12, 30];
/** A group of test files that takes longer hangs, which counts as detection. */
const HANGS_MS = 300_000;

interface Mutant extends Mutation {
  readonly file: string;
}

const seed = Number(options.seed);
const files = sources("src", "plugins");
const costs: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(root, "test/costs.json"), "utf8"),
);
const higher = new Set([...CI, ...Object.keys(NIGHTLY), ...ALONE]);
const seenBy = watchers();
const scratch = mkdtempSync(join(tmpdir(), "tollgate-mutants-"));
process.on("exit", removeScratch);
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));
makeScratch();

const chosen = options.tests.split(",").filter(Boolean);
const only = new Set(options.only.split(",").filter(Boolean).map(Number));
const finders = new Set<string>();
const survived: string[] = [];
let found = 0;
console.log(`seed ${seed}`);
for (const [at, mutant] of drawn(Number(options.count)).entries()) {
  if (only.size > 0 && !only.has(at + 1)) continue;
  const before = processorSeconds();
  const by = await finderOf(mutant);
  const line = `${String(at + 1).padStart(3)}  ${shown(mutant)}\n     ${by} (${(processorSeconds() - before).toFixed(0)} s)`;
  console.log(line);
  if (by.startsWith("found")) found++;
  else survived.push(line);
}
await checkFinders();
if (survived.length > 0) console.log(`\nsurvived:\n${survived.join("\n")}`);
console.log(
  `\n${found} found, ${survived.length} survived, seed ${seed}, ${processorSeconds().toFixed(0)} s of processor time`,
);
const isEnough = found >= Number(options.least) * (found + survived.length);
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

/** Result for a mutant: "found by …", "survived …". */
async function finderOf(mutant: Mutant): Promise<string> {
  const began = processorSeconds();
  const path = join(scratch, mutant.file);
  const source = files.get(mutant.file)!;
  const seeing = testsOf(mutant.file);
  const late = async (where: string) =>
    (await breaksTypes(mutant.file)) ? "found by tsc" : `survived: out of time ${where}`;
  writeFileSync(path, mutated(source, mutant));
  try {
    for (const group of groups(seeing)) {
      const left = Number(options.cpu) - (processorSeconds() - began);
      if (left <= 0) return await late(`before ${group[0]}`);
      const by = await failing(group, left);
      if (by === "time") return await late(`in ${group[0]}`);
      if (by !== undefined) {
        finders.add(by);
        return `found by ${by}`;
      }
    }
    if (chosen.length === 0 && (await breaksTypes(mutant.file))) return "found by tsc";
    return `survived all ${seeing.length} test files`;
  } finally {
    writeFileSync(path, source);
  }
}

/** Returns the test files that can detect a change of a source file, nearest first. */
function testsOf(file: string): string[] {
  const reached = new Map([[file, 0]]);
  for (const [at, distance] of reached)
    for (const importer of seenBy.get(at) ?? [])
      if (!reached.has(importer)) reached.set(importer, distance + 1);
  const cost = (test: string) => costs[test] ?? 5;
  const tier = (test: string) => (higher.has(test) ? 1 : 0);
  return [...reached]
    .filter(([test]) => test.endsWith(".test.ts"))
    .filter(([test]) =>
      chosen.length > 0 ? chosen.includes(test) : options.tier === "nightly" || !higher.has(test),
    )
    .filter(([test]) => !/^test\/(mutations|run)\.test/.test(test))
    .map(([test, distance]) => [test, distance - 2 * shared(test, file)] as const)
    .sort(([a, near], [b, far]) => tier(a) - tier(b) || near - far || cost(a) - cost(b))
    .map(([test]) => test);
}

/** Number of words that two paths share. */
function shared(one: string, other: string): number {
  const words = other.split(/\W+/).filter((word) => word.length > 2);
  return new Set(one.split(/\W+/).filter((word) => words.includes(word))).size;
}

/**
 * For each file, the files that import it, including tests. A test that starts the program depends
 * on everything that the program imports.
 */
function watchers(): Map<string, string[]> {
  const graph = importGraph(new Map([...files, ...sources("test")]));
  graph.get("test/kit/process/program.ts")!.push("src/cli/bin.ts");
  return importers(graph);
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
async function failing(tests: readonly string[], seconds: number): Promise<string | undefined> {
  const limit = Math.ceil(seconds) + 20;
  const { code, output } = await ran(
    `ulimit -t ${limit}; exec vitest run --config=test/vitest.config.ts --maxWorkers=1 --bail=1 ${tests.join(" ")}`,
    { TOLLGATE_TIER: options.tier },
  );
  if (code === 0) return undefined;
  if (code === undefined) return `${tests[0]} (hangs)`;
  const failed = /FAIL +(?:\|?\w+\|? +)?(test\/\S+\.test\.ts)/.exec(output)?.[1];
  if (failed !== undefined) return failed;
  // A worker that reaches the CPU limit has found nothing, unless these files take far less time
  // without a defect.
  const usual = tests.reduce((sum, test) => sum + (costs[test] ?? 5), 0);
  return usual * 3 > limit ? "time" : `${tests[0]} (ends without a result)`;
}

/** The first check of the scratch folder takes longest. The others check only changes. */
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
    const child = spawn("nice", ["-n", "10", "bash", "-c", command], {
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
    const timer = setTimeout(() => {
      hangs = true;
      kill();
    }, HANGS_MS);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: hangs ? undefined : (code ?? 1), output: Buffer.concat(parts).toString() });
    });
  });
}

/** CPU time of all programs that this one has run so far. */
function processorSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/**
 * A copy of the working tree. Its dependencies are links, except for those into the tree itself.
 */
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
