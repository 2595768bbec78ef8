// The console in a real browser: `node --conditions=tollgate-source test/console/main.ts`, with
// words to select journeys. `--alone`: the machine is idle, so time limits apply exactly. Ends with
// a line `N passed, N failed`.
import { openBrowser } from "./browser.ts";
import { DEEDS } from "./deeds.ts";
import { JOURNEYS } from "./journeys.ts";
import { PLAYGROUND } from "./playground.ts";
import { REALTIME } from "./realtime.ts";
import { outage } from "./outage.ts";
import { rights } from "./rights.ts";
import { openStage } from "./stage.ts";
import { WATCHING } from "./watching.ts";

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const wanted = [
  ...JOURNEYS,
  ...WATCHING,
  ...PLAYGROUND,
  ...REALTIME,
  ...DEEDS,
  rights,
  outage,
].filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
let failed = 0;
{
  await using stage = await openStage();
  await stage.play(8);
  const browser = await openBrowser();
  for (const { name, run } of wanted) {
    const began = performance.now();
    const problem = await run(stage, browser).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (problem !== undefined) failed++;
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    console.log(`${problem === undefined ? "passed" : "FAILED"}  ${name}  ${seconds} s`);
    if (problem !== undefined) console.log(problem);
  }
  await browser.close();
}
console.log(`${wanted.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
