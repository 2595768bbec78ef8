// `npm run clients`: real clients, as their users run them, against the real daemon. Ends with a line `N passed, N failed`.
//
//     npm run clients                          all of them
//     npm run clients -- codex                 one
//     npm run clients -- python                all that are written in Python
//     npm run clients -- codex patch picture   those of its turns whose name has one of these words
//     npm run clients -- python --brief        a line for each client, and for each check that fails
import { PLAYS } from "./clients.ts";

const args = process.argv.slice(2);
const words = args.filter((arg) => !arg.startsWith("-"));
const brief = args.includes("--brief");
const named = PLAYS.filter(({ names }) => names.some((name) => words.includes(name)));
const wanted = words.filter((word) => !named.some(({ names }) => names.includes(word)));

let passed = 0;
let failed = 0;
for (const { title, cast } of named.length > 0 ? named : PLAYS) {
  const began = performance.now();
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
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
