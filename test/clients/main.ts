// `npm run clients`: real clients, as their users run them, against the real daemon. Ends with a line `N passed, N failed`.
//
//     npm run clients                          all of them
//     npm run clients -- codex                 one
//     npm run clients -- codex patch picture   those of its turns whose name has one of these words
import { CLIENTS, checksOf } from "./clients.ts";

const words = process.argv.slice(2);
const named = CLIENTS.filter(({ name }) => words.includes(name));
const wanted = words.filter((word) => !named.some(({ name }) => name === word));

let passed = 0;
let failed = 0;
for (const client of named.length > 0 ? named : CLIENTS) {
  const { name, version } = client.package;
  console.log(`${name} ${version}`);
  await using cast = await checksOf(client);
  for (const { name, run } of cast.checks) {
    if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
    const why = await run().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (why === undefined) passed++;
    else failed++;
    console.log(
      `${why === undefined ? "PASS" : "FAIL"} ${name}${why === undefined ? "" : `: ${why}`}`,
    );
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
