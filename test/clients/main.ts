// `npm run clients`: real clients, as their users run them, against the real daemon. Ends with a line `N passed, N failed`.
//
//     npm run clients                          all of them
//     npm run clients -- codex                 one
//     npm run clients -- python                all that are written in Python
//     npm run clients -- codex patch picture   those of its turns whose name has one of these words
//     npm run clients -- python --brief        a line for each client, and for each check that fails
//     npm run clients -- --page                the nightly run: writes docs/clients.md
import { PLAYS } from "./clients.ts";
import { writePage, type ClientResult } from "./page.ts";

const args = process.argv.slice(2);
const words = args.filter((arg) => !arg.startsWith("-"));
const brief = args.includes("--brief");
const named = PLAYS.filter(({ names }) => names.some((name) => words.includes(name)));
const wanted = words.filter((word) => !named.some(({ names }) => names.includes(word)));

let passed = 0;
let failed = 0;
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
    // It could not even be installed or started.
    failed++;
    console.log(`FAIL ${title}: ${wordsOf(error)}`);
  }
  results.push({ title, passed: passed - before.passed, failed: failed - before.failed });
}
// One that plays some of its turns says nothing of all.
if (args.includes("--page") && wanted.length === 0)
  writePage(results, new Date().toISOString().slice(0, 10));
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
