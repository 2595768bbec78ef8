// `npm run console:proof`: an operator's journey and attacks on the console, in Debian's Chromium.
// `--brief`: fewer pages with hostile names, and no pages with hostile error texts.
import {
  forgery,
  fixation,
  framed,
  guessing,
  strangeHosts,
  type Wrong,
  written,
} from "./attacks.ts";
import { openBrowser } from "./browser.ts";
import { errorTexts } from "./error-texts.ts";
import { journey } from "./journey.ts";
import { openStage } from "./stage.ts";
import { VIEWS } from "./views.ts";

const isBrief = process.argv.includes("--brief");
const wrong: Wrong = [];
await using stage = await openStage();
await stage.play(2);
const browser = await openBrowser();
const context = await browser.newContext();
await stage.enter(context);
const began = performance.now();
const steps = {
  journey: () => journey(stage, context, wrong),
  forgery: () => forgery(stage, context, wrong),
  framed: () => framed(stage, context, wrong),
  fixation: () => fixation(stage, browser, wrong),
  hosts: () => strangeHosts(stage, wrong),
  written: () => written(stage, context, VIEWS, wrong, isBrief ? 3 : 12),
  ...(!isBrief && { errors: () => errorTexts(browser, wrong) }),
  guessing: () => guessing(stage, wrong),
};
for (const [name, step] of Object.entries(steps)) {
  const before = wrong.length;
  await step().catch((error: Error) => wrong.push(`${name}: ${error.message}`));
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  console.log(`${wrong.length === before ? "held" : "FELL"} ${name} (${seconds} s)`);
}
await browser.close();
for (const line of wrong.slice(0, 50)) console.log(`  wrong: ${line}`);
const failed = new Set(wrong.map((line) => line.split(":", 1)[0])).size;
console.log(`${Object.keys(steps).length - failed} passed, ${failed} failed`);
process.exitCode = wrong.length === 0 ? 0 : 1;
