// `npm run clients`: real clients, as their users run them, against the real daemon. Ends with a line `N passed, N failed`.
//
//     npm run clients                          all of them
//     npm run clients -- codex                 one
//     npm run clients -- python                all that are written in Python
//     npm run clients -- codex patch picture   those of its turns whose name has one of these words
import { PLAYS } from "./clients.ts";

const words = process.argv.slice(2);
const named = PLAYS.filter(({ names }) => names.some((name) => words.includes(name)));
const wanted = words.filter((word) => !named.some(({ names }) => names.includes(word)));

let passed = 0;
let failed = 0;
for (const { title, cast } of named.length > 0 ? named : PLAYS) {
  console.log(title);
  try {
    await using playing = await cast();
    for (const { name, run } of playing.checks) {
      if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
      const why = await run().then(() => undefined, wordsOf);
      if (why === undefined) passed++;
      else failed++;
      console.log(
        `${why === undefined ? "PASS" : "FAIL"} ${name}${why === undefined ? "" : `: ${why}`}`,
      );
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
