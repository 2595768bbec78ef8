// `npm run clients`: real clients, as their users run them, with the real gateway. A client that
// cannot be installed is skipped by name. The last line is `N passed, N failed, N skipped`.
//
//     npm run clients                          all of them
//     npm run clients -- codex                 one
//     npm run clients -- python                all that are written in Python
//     npm run clients -- agents                the coding clients and agent frameworks of test/clients/agents
//     npm run clients -- codex patch picture   those of its turns whose name has one of these words
//     npm run clients -- python --brief        a line for each client, and for each check that fails
//     npm run clients -- --page                the nightly run: writes docs/guides/clients.md
import { PLAYS } from "./clients.ts";
import { NotInstalled } from "./install.ts";
import { writePage, type ClientResult } from "./page.ts";

const args = process.argv.slice(2);
const words = args.filter((arg) => !arg.startsWith("-"));
const brief = args.includes("--brief");
const named = PLAYS.filter(({ names }) => names.some((name) => words.includes(name)));
const wanted = words.filter((word) => !named.some(({ names }) => names.includes(word)));

let passed = 0;
let failed = 0;
const skipped: string[] = [];
const results: ClientResult[] = [];
for (const { title, cast } of named.length > 0 ? named : PLAYS) {
  const began = performance.now();
  const before = { passed, failed };
  if (!brief) console.log(title);
  try {
    await using playing = await cast();
    for (const { name, run } of playing.checks) {
      if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
      const why = await run().then(() => undefined, wordsOf);
      if (why === undefined) passed++;
      else failed++;
      if (why !== undefined) console.log(`FAIL ${name}: ${why}`);
      else if (!brief) console.log(`PASS ${name}`);
    }
    if (brief) {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      console.log(`${title}: ${playing.checks.length} checks, ${seconds} s`);
    }
  } catch (error) {
    if (error instanceof NotInstalled) {
      skipped.push(title);
      console.log(`SKIP ${title}: ${error.message}`);
      results.push({ title, passed: 0, failed: 0, skipped: true });
      continue;
    }
    failed++;
    console.log(`FAIL ${title}: ${wordsOf(error)}`);
  }
  results.push({ title, passed: passed - before.passed, failed: failed - before.failed });
}
// A run of some turns proves nothing about all.
if (args.includes("--page") && wanted.length === 0)
  writePage(results, new Date().toISOString().slice(0, 10));
if (skipped.length > 0) console.log(`Skipped: ${skipped.join(", ")}`);
console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
