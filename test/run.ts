// `npm test`: tests, and beside them types, lint, format and leftovers. Says a line for each as it finishes, and for each file
// of tests; what fails is shown at length, and played once more by itself. Ends with a line `N passed, N failed`: the tests, and one for each tool.
//
//     npm test                       everything
//     npm test -- walk config        only tests whose path has one of these words, and every tool
//     npm test -- --quick            without the daemon: nothing of test/e2e, test/rig and test/clients
//     npm test -- --long             those alone that take minutes each, which `.ci/run` plays beside the rest
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const bin = join(root, "node_modules/.bin");
const args = process.argv.slice(2);
const words = args.filter((arg) => !arg.startsWith("-"));
const quick = args.includes("--quick");
const long = args.includes("--long");

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const TOOLS: readonly Step[] = [
  { name: "types", command: ["tsc", "-p", ".", "--pretty", "false"] },
  { name: "console", command: ["tsc", "-p", "plugins/observers/console/web", "--pretty", "false"] },
  { name: "lint", command: ["oxlint", "."] },
  { name: "format", command: ["oxfmt", "--check", "."] },
  { name: "leftovers", command: ["knip", "--no-progress"] },
];

/** What starts a daemon and waits for it. */
const SLOW = ["test/e2e", "test/rig", "test/clients"];
/** What takes minutes: left out unless it is asked for, here or by a word of its name. */
const LONG = [
  "test/cli/check-plugin.test.ts",
  "test/cli/plugin.test.ts",
  "test/clouds/conformance.test.ts",
  "test/clouds/money.test.ts",
  "test/e2e/admin.test.ts",
  "test/e2e/cuts.test.ts",
  "test/e2e/ended-generations.test.ts",
  "test/e2e/fleet-apart.test.ts",
  "test/e2e/fleet.test.ts",
  "test/e2e/grid.test.ts",
  "test/e2e/hanging-store.test.ts",
  "test/e2e/hostile.test.ts",
  "test/e2e/leaving.test.ts",
  "test/e2e/notices.test.ts",
  "test/e2e/package.test.ts",
  "test/e2e/playground-code.test.ts",
  "test/e2e/postgres.test.ts",
  "test/e2e/pulse.test.ts",
  "test/e2e/readme.test.ts",
  "test/e2e/saves.test.ts",
  "test/e2e/socket-activation.test.ts",
  "test/e2e/starts-pairwise.test.ts",
  "test/e2e/store-copy.test.ts",
  "test/e2e/workers.test.ts",
  "test/e2e/zdr.test.ts",
  "test/kit/postgres.test.ts",
  "test/plugins/conformance.test.ts",
  "test/plugins/defects/defects.test.ts",
  "test/plugins/stores/crash.test.ts",
  "test/plugins/stores/moving.test.ts",
  "test/plugins/stores/on-postgres.test.ts",
  "test/plugins/stores/postgres-apart.test.ts",
  "test/plugins/stores/postgres-doubt.test.ts",
  "test/plugins/stores/postgres-failover.test.ts",
  "test/plugins/stores/postgres-keeping.test.ts",
  "test/plugins/stores/postgres-roads.test.ts",
  "test/plugins/stores/postgres-rules.test.ts",
  "test/plugins/stores/postgres-tls.test.ts",
  "test/protocols/linear/linear.test.ts",
  "test/rig/access-log.test.ts",
  "test/rig/affinity.test.ts",
  "test/rig/alerts.test.ts",
  "test/rig/author.test.ts",
  "test/rig/budget.test.ts",
  "test/rig/canary.test.ts",
  "test/rig/clock.test.ts",
  "test/rig/crash.test.ts",
  "test/rig/cuts.test.ts",
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
  "test/rig/zdr.test.ts",
  "test/unit/gateway/workers/lent-store.test.ts",
  "test/unit/testing/conformance.test.ts",
  "test/walk/hostile.test.ts",
];
/** As long, and what takes all that the machine has, or has a law of speed: one after the other, with nothing beside them. */
const ALONE = [
  "test/bench/guard.test.ts",
  "test/rig/attack.test.ts",
  "test/rig/ledger-size.test.ts",
  "test/rig/overload.test.ts",
  "test/rig/soak.test.ts",
];

/** With more files than this that fail it is no chance. */
const MOST_AGAIN = 5;

interface Ended {
  readonly code: number;
  readonly output: string;
  readonly seconds: string;
}

function run(
  [tool, ...rest]: readonly [string, ...string[]],
  heard: (text: string) => void = () => {},
): Promise<Ended> {
  const began = performance.now();
  // The tools run on the Node that the checkout brought, whatever is first on the machine's own path.
  const { FORCE_COLOR: _, ...env } = process.env;
  const around = { ...env, NO_COLOR: "1", PATH: `${bin}${delimiter}${env["PATH"]}` };
  return new Promise((resolve) => {
    const child = spawn(join(bin, tool), rest, {
      cwd: root,
      env: around,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const parts: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => {
      parts.push(part);
      heard(part.toString());
    });
    child.stderr.on("data", (part: Buffer) => parts.push(part));
    const end = (code: number, more = "") =>
      resolve({
        code,
        output: (Buffer.concat(parts).toString() + more).trim(),
        seconds: `${((performance.now() - began) / 1000).toFixed(1)} s`,
      });
    child.on("error", (error) => end(127, String(error)));
    child.on("close", (code) => end(code ?? 1));
  });
}

const say = (name: string, verdict: string, seconds: string) =>
  console.log(`${name.padEnd(10)} ${verdict.padEnd(28)} ${seconds.padStart(8)}`);
const show = (output: string) => console.log(`\n${output}\n`);

let passed = 0;
let failed = 0;

// Gateways of the tests are what is published: it starts in a third of the time, and some thousand of them start.
delete process.env["TOLLGATE_TESTS"];
if (!quick) await build();

if (long) {
  await play("long", LONG);
  await play("alone", ["--maxWorkers=1", ...ALONE]);
} else
  await Promise.all([
    look(),
    play("tests", [
      ...(quick ? SLOW.map((folder) => `--exclude=${folder}/**`) : []),
      ...(words.length > 0 ? words : [...LONG, ...ALONE].map((file) => `--exclude=${file}`)),
    ]),
  ]);

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** Without it they are run from source. */
async function build(): Promise<void> {
  const { code, output, seconds } = await run(["node", ".build/build.ts"]);
  if (code === 0) passed++;
  else failed++;
  say("build", code === 0 ? "passed" : "FAILED", seconds);
  if (code !== 0) return show(output);
  process.env["TOLLGATE_TESTS"] = "built";
}

/** The tools, one after the other: most tests wait most of the time, and leave them the room. */
async function look(): Promise<void> {
  for (const { name, command } of TOOLS) {
    const { code, output, seconds } = await run(command);
    if (code === 0) passed++;
    else failed++;
    say(name, code === 0 ? "passed" : "FAILED", seconds);
    if (code !== 0) show(output);
  }
}

async function play(name: string, which: readonly string[]): Promise<void> {
  const { code, output, seconds, files, tests } = await vitest(which, finished());
  const skipped = tests.skipped > 0 ? `, ${tests.skipped} skipped` : "";
  say(name, `${tests.passed} passed, ${tests.failed} failed${skipped}`, seconds);
  passed += tests.passed;
  if (code === 0) return;
  show(worst(output));
  // A suite that does not even load, an error that was not caught: no test failed, and yet.
  const plain = tests.failed > 0 && !/Unhandled Errors?/.test(output);
  if (plain && words.length === 0 && files.length <= MOST_AGAIN && (await again(files)))
    passed += tests.failed;
  else failed += Math.max(1, tests.failed);
}

/** What fails beside others is played once more by itself: a machine that has other things to do breaks no law. Both are shown. */
async function again(files: readonly string[]): Promise<boolean> {
  const { code, output, seconds } = await vitest(["--maxWorkers=1", ...files], finished());
  say("again", code === 0 ? "passed, played alone" : "FAILED, played alone", seconds);
  if (code !== 0) show(worst(output));
  return code === 0;
}

async function vitest(which: readonly string[], heard: (text: string) => void) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-run-"));
  const report = join(folder, "vitest.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const command = ["run", "--config=test/vitest.config.ts", ...reporters, ...which];
  const ended = await run(["vitest", ...command], heard);
  const { tests, files } = counted(report);
  rmSync(folder, { recursive: true, force: true });
  return { ...ended, tests, files };
}

/** A line as each file finishes, so that it is seen to live. */
function finished(): (text: string) => void {
  let rest = "";
  let files = 0;
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const [, mark, file, more = ""] =
        /^ ?(✓|❯|×|↓) +(?:\|?\w+\|? +)?(test\/\S+\.test\.ts) (.*)$/.exec(line) ?? [];
      if (file === undefined) continue;
      const how = mark === "✓" ? "" : mark === "↓" ? " skipped" : " FAILED";
      console.log(`  ${String(++files).padStart(3)}  ${file}${how}  ${more.replace(/[()]/g, "")}`);
    }
  };
}

/** `files`: those with a test that failed. */
function counted(path: string) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } =
      JSON.parse(readFileSync(path, "utf8"));
    return {
      tests: {
        passed: numPassedTests as number,
        failed: numFailedTests as number,
        skipped: numPendingTests + (numTodoTests ?? 0),
      },
      files: (testResults as { name: string; status: string }[])
        .filter(({ status }) => status === "failed")
        .map(({ name }) => relative(root, name)),
    };
  } catch {
    return { tests: { passed: 0, failed: 0, skipped: 0 }, files: [] };
  }
}

/** From the first failure on; what went well is not worth reading again. */
function worst(text: string): string {
  const from = text.search(/^.*(Failed (Suites|Tests)|Unhandled Errors?).*$/m);
  const to = text.search(/^ *Isolate .*$/m);
  if (from < 0) return text.split("\n").slice(-80).join("\n");
  return text.slice(from, to > from ? to : undefined).trimEnd();
}
