// Runs the checks of one tier: types, lint, format, unused code, tests, and in the higher tiers
// programs. Prints a line for each when it finishes, then the 40 most expensive test files, and
// ends with `N passed, N failed`.
//
//     npm test                      the commit tier
//     npm test -- pipeline config     only test files whose path contains one of these words, of every tier, and the tools
//     npm test -- --quick           the commit tier without tests that start a gateway: nothing of test/e2e, test/rig, test/clients
//     npm run test:ci               the commit and ci tiers
//     npm run test:nightly          all tiers. A test that fails and then passes fails this run. --shard 1/2 runs one half
//     … -- --since main             also the nightly test files that are about what was changed since that commit
//     … -- --no-build               tests dist as it is; without this option it is built first
//     … -- --no-tools               only the tests
//     … -- --config <file>          another config of vitest
//     … -- --save-costs             also writes test/costs.json, by which the next run orders its files
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { affected, changedSince } from "./affected.ts";
import { ALONE, CI, NIGHTLY, PROGRAMS, TIERS, type Program, type Tier } from "./tiers.ts";

const root = new URL("..", import.meta.url).pathname;
const bin = join(root, "node_modules/.bin");
const { values: options, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    tier: { type: "string", default: "commit" },
    quick: { type: "boolean", default: false },
    "no-build": { type: "boolean", default: false },
    "no-tools": { type: "boolean", default: false },
    config: { type: "string", default: "test/vitest.config.ts" },
    shard: { type: "string" },
    since: { type: "string" },
    "save-costs": { type: "boolean", default: false },
  },
});
if (!TIERS.includes(options.tier as Tier)) throw new Error(`--tier is one of ${TIERS.join(", ")}.`);
const tier = TIERS.indexOf(options.tier as Tier);
const isIn = (other: Tier) => TIERS.indexOf(other) <= tier;

const TOOLS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  // With one thread it takes a third less processor time, and the tests use all processors.
  types: ["tsc", "-p", ".", "--pretty", "false", "--singleThreaded"],
  console: ["tsc", "-p", "plugins/observers/console/web", "--pretty", "false"],
  lint: ["oxlint", "."],
  format: ["oxfmt", "--check", "."],
  unused: ["knip", "--no-progress"],
};

/** Folders of tests that start a gateway. */
const WITH_GATEWAY = ["test/e2e", "test/rig", "test/clients"];
/** If more files than this fail, none of them is run again: the failures are no coincidence. */
const MOST_AGAIN = 10;
/** How many files the list of the most expensive ones has. */
const LISTED = 40;

const total = { passed: 0, failed: 0, flaky: 0 };
const scratch = mkdtempSync(join(tmpdir(), "tollgate-run-"));
const costs = join(scratch, "costs");
const started = performance.now();
process.env["TOLLGATE_TEST_COSTS"] = costs;
delete process.env["TOLLGATE_TESTS"];
process.env["TOLLGATE_TIER"] = options.tier;

// Tests that start a program start the built one, which takes a third of the time.
if (!options.quick) await build();
if (words.length > 0) await Promise.all([tools(), tests("tests", words)]);
else {
  const all = () =>
    tests(
      "tests",
      leftOut().map((file) => `--exclude=${file}`),
    );
  if (isIn("nightly")) {
    await Promise.all([tools(), all()]);
    await tests("alone", ["--maxWorkers=1", ...ALONE]);
    // The nightly programs load the machine and measure it, so nothing runs next to them.
    await programs();
  } else await Promise.all([tools().then(programs), all()]);
}
printCosts();
rmSync(scratch, { recursive: true, force: true });
console.log(`${options.tier}: ${seconds(started)}, ${total.flaky} flaky`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;

/** The programs of this tier, one at a time. */
async function programs(): Promise<void> {
  for (const program of PROGRAMS.filter((of) => isIn(of.tier)).filter(inShard))
    await runProgram(program);
}

/** Whether this shard runs the program at this place of the list. */
function inShard(_: unknown, at: number): boolean {
  const [shard, of] = (options.shard ?? "1/1").split("/").map(Number) as [number, number];
  return at % of === shard - 1;
}

/** Test files that this run leaves out. */
function leftOut(): string[] {
  const since = options.since === undefined ? [] : affected(changedSince(root, options.since));
  return [
    ...ALONE,
    ...(isIn("ci") ? [] : CI),
    ...(isIn("nightly") ? [] : Object.keys(NIGHTLY).filter((file) => !since.includes(file))),
    ...(options.quick ? WITH_GATEWAY.map((folder) => `${folder}/**`) : []),
  ];
}

interface Ended {
  readonly code: number;
  readonly output: string;
  readonly seconds: string;
}

/** Runs a program of node_modules/.bin with the checkout's own Node, whatever Node the machine has. */
function run(
  [tool, ...args]: readonly [string, ...string[]],
  onOutput: (text: string) => void = () => {},
): Promise<Ended> {
  const began = performance.now();
  const { FORCE_COLOR: _, ...rest } = process.env;
  const path = `${bin}${delimiter}${rest["PATH"]}`;
  // The TypeScript compiler is a Go program. It takes half of the processor time if it collects its
  // garbage less often.
  const env = { GOGC: "400", ...rest, NO_COLOR: "1", PATH: path };
  return new Promise((resolve) => {
    const child = spawn(join(bin, tool), args, {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const parts: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => {
      parts.push(part);
      onOutput(part.toString());
    });
    child.stderr.on("data", (part: Buffer) => parts.push(part));
    const end = (code: number, more = "") =>
      resolve({
        code,
        output: (Buffer.concat(parts).toString() + more).trim(),
        seconds: seconds(began),
      });
    child.on("error", (error) => end(127, String(error)));
    child.on("close", (code) => end(code ?? 1));
  });
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

function show(name: string, result: string, time = ""): void {
  console.log(`${name.padEnd(16)} ${result.padEnd(36)} ${time.padStart(8)}`);
}

/** One check, right or wrong. */
async function single(name: string, command: readonly [string, ...string[]]): Promise<boolean> {
  const { code, output, seconds: time } = await run(command);
  if (code === 0) total.passed++;
  else total.failed++;
  show(name, code === 0 ? "passed" : "FAILED", time);
  if (code !== 0) console.log(`\n${output}\n`);
  return code === 0;
}

/** A program that counts what it checks. */
async function counted(name: string, command: readonly [string, ...string[]]): Promise<void> {
  const { code, output, seconds: time } = await run(command);
  const [, passed = "0", failed = "0"] =
    [...output.matchAll(/^(\d+) passed, (\d+) failed/gm)].at(-1) ?? [];
  const bad = Math.max(Number(failed), code === 0 ? 0 : 1);
  total.passed += Math.max(Number(passed), bad === 0 ? 1 : 0);
  total.failed += bad;
  show(name, bad === 0 ? "passed" : "FAILED", time);
  for (const [line] of output.matchAll(/^SKIP .*/gm)) console.log(line);
  if (bad > 0) console.log(`\n${output.split("\n").slice(-120).join("\n")}\n`);
}

async function runProgram({ name, args, needs = [] }: Program): Promise<void> {
  if (needs.length > 0 && !needs.some((path) => existsSync(path)))
    show(name, `skipped: no ${needs[0]}`);
  else await counted(name, ["node", ...args]);
}

async function build(): Promise<void> {
  if (options["no-build"]) process.env["TOLLGATE_TESTS"] = "built";
  else if (await single("build", ["node", ".build/build.ts", "--no-check"]))
    process.env["TOLLGATE_TESTS"] = "built";
}

/** One after the other, next to the tests. */
async function tools(): Promise<void> {
  if (options["no-tools"]) return;
  for (const [name, command] of Object.entries(TOOLS)) await single(name, command);
}

async function tests(name: string, args: readonly string[]): Promise<void> {
  const shard = options.shard === undefined ? [] : [`--shard=${options.shard}`];
  const { code, output, seconds: time, files, count } = await vitest([...shard, ...args]);
  show(name, `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`, time);
  total.passed += count.passed;
  if (code === 0) return;
  console.log(`\n${failuresOf(output)}\n`);
  // Without a failed test, a file did not load or an error was not caught.
  const isPlain = count.failed > 0 && !/Unhandled Errors?/.test(output);
  if (isPlain && files.length <= MOST_AGAIN && (await passAlone(files))) {
    total.flaky += count.failed;
    total[isIn("nightly") ? "failed" : "passed"] += count.failed;
    for (const file of files) show("flaky", file);
  } else total.failed += Math.max(1, count.failed);
}

/** Whether files that failed next to others pass alone. Such a test is a bug: it is reported as flaky. */
async function passAlone(files: readonly string[]): Promise<boolean> {
  const { code, output, seconds: time } = await vitest(["--maxWorkers=1", ...files]);
  show("again", code === 0 ? "passed alone" : "FAILED alone", time);
  if (code !== 0) console.log(`\n${failuresOf(output)}\n`);
  return code === 0;
}

async function vitest(args: readonly string[]) {
  const report = join(scratch, "vitest.json");
  rmSync(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const ended = await run(
    ["vitest", "run", `--config=${options.config}`, ...reporters, ...args],
    printFinished(),
  );
  return { ...ended, ...countsIn(report) };
}

/** Prints a line when each file finishes. */
function printFinished(): (text: string) => void {
  let rest = "";
  let files = 0;
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const [, mark, file, more = ""] =
        /^ ?(✓|❯|×|↓) +(?:\|?\w+\|? +)?(test\/\S+\.test\.ts) (.*)$/.exec(line) ?? [];
      if (file === undefined) continue;
      const result = mark === "✓" ? "" : mark === "↓" ? " skipped" : " FAILED";
      console.log(
        `  ${String(++files).padStart(3)}  ${file}${result}  ${more.replace(/[()]/g, "")}`,
      );
    }
  };
}

/** Of vitest's report: how many tests there were, and the files with a failed one. */
function countsIn(report: string) {
  if (!existsSync(report)) return { count: { passed: 0, failed: 0, skipped: 0 }, files: [] };
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, "utf8"),
  );
  return {
    count: {
      passed: numPassedTests as number,
      failed: numFailedTests as number,
      skipped: numPendingTests + (numTodoTests ?? 0),
    },
    files: (testResults as { name: string; status: string }[])
      .filter(({ status }) => status === "failed")
      .map(({ name }) => (name.startsWith(root) ? relative(root, name) : name)),
  };
}

/** Output from the first failure on. */
function failuresOf(text: string): string {
  const from = text.search(/^.*(Failed (Suites|Tests)|Unhandled Errors?).*$/m);
  const to = text.search(/^ *Isolate .*$/m);
  if (from < 0) return text.split("\n").slice(-80).join("\n");
  return text.slice(from, to > from ? to : undefined).trimEnd();
}

/** The most expensive files by processor time, and the number of programs that tests started. */
function printCosts(): void {
  if (!existsSync(costs)) return;
  const rows = readFileSync(costs, "utf8")
    .trim()
    .split("\n")
    .map(
      (line) =>
        JSON.parse(line) as { file: string; seconds: number; elapsed: number; programs: number },
    );
  rows.sort((a, b) => b.seconds - a.seconds);
  console.log(
    `\nprocessor time and elapsed time in seconds, programs started: the ${LISTED} most expensive of ${rows.length} files`,
  );
  for (const { file, seconds: used, elapsed, programs } of rows.slice(0, LISTED))
    console.log(
      `${used.toFixed(1).padStart(7)} ${elapsed.toFixed(1).padStart(7)} ${String(programs).padStart(5)}  ${file}`,
    );
  const sum = (of: "seconds" | "programs") => rows.reduce((all, row) => all + row[of], 0);
  console.log(
    `${sum("seconds").toFixed(0)} s of processor time, ${sum("programs")} programs started\n`,
  );
  if (!options["save-costs"]) return;
  const kept = existsSync(join(root, "test/costs.json"))
    ? (JSON.parse(readFileSync(join(root, "test/costs.json"), "utf8")) as Record<string, number>)
    : {};
  for (const { file, seconds: used } of rows) kept[file] = Number(used.toFixed(1));
  const sorted = Object.entries(kept)
    .filter(([file]) => existsSync(join(root, file)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(
    join(root, "test/costs.json"),
    `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`,
  );
}
