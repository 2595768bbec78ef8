// `npm run console:shots`: a screenshot of every view in light, dark, and at phone width, in the
// given folder or in /tmp, and its problems: an empty image, a page that is wider than its window,
// or a browser error. `--docs`: the screenshots of docs/guides/console.md.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { inflateSync } from "node:zlib";
import { complaints, openBrowser, overflow } from "./browser.ts";
import { openStage } from "./stage.ts";
import { VIEWS } from "./views.ts";

const EVERY = [
  { name: "light", colorScheme: "light", width: 1440, height: 900 },
  { name: "dark", colorScheme: "dark", width: 1440, height: 900 },
  { name: "phone", colorScheme: "light", width: 390, height: 844 },
  { name: "phone-dark", colorScheme: "dark", width: 390, height: 844 },
] as const;
/** Small enough to fit next to the text. */
const IN_DOCS = [{ name: "", colorScheme: "light", width: 1040, height: 660 }] as const;

/** Number of colors in an image. An empty one has few. */
function coloursOf(png: Buffer): number {
  const parts: Buffer[] = [];
  let wide = 0;
  for (let at = 8; at < png.length;) {
    const size = png.readUInt32BE(at);
    const kind = png.toString("latin1", at + 4, at + 8);
    if (kind === "IHDR") wide = png.readUInt32BE(at + 8) * (png[at + 17] === 6 ? 4 : 3) + 1;
    if (kind === "IDAT") parts.push(png.subarray(at + 8, at + 8 + size));
    at += size + 12;
  }
  const bytes = inflateSync(Buffer.concat(parts));
  // A row equal to the previous one has a filter byte and zeros. Drawn content has others.
  let drawn = 0;
  for (let row = 0; row + wide <= bytes.length; row += wide)
    if (bytes.subarray(row + 1, row + wide).some((byte) => byte !== 0)) drawn++;
  return drawn;
}

const [words = "", ...names] = process.argv.slice(2);
const forDocs = words === "--docs";
const FORMS = forDocs ? IN_DOCS : EVERY;
const folder = forDocs
  ? join(import.meta.dirname, "../../docs/pictures")
  : words || join(tmpdir(), "tollgate-shots");
mkdirSync(folder, { recursive: true });
const wanted = VIEWS.filter(
  ({ name, inDocs }) => (!forDocs || inDocs) && (names.length === 0 || names.includes(name)),
);
const wrong: string[] = [];
await using stage = await openStage();
await stage.play(12);
const sockets = await stage.connect();
const browser = await openBrowser();
for (const { name: form, colorScheme, width, height } of FORMS) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height } });
  await stage.enter(context);
  for (const { name, address, shows, opens } of wanted) {
    const page = await context.newPage();
    const said = complaints(page);
    const at = `${name} ${form}`;
    await page.goto(`${stage.console}${address}`);
    await page
      .getByText(shows)
      .first()
      .waitFor()
      .catch(() => wrong.push(`${at}: does not show "${shows}"`));
    if (opens) await page.getByRole("link", { name: opens }).first().click();
    await page.waitForLoadState("networkidle", { timeout: 1_000 }).catch(() => {});
    const { by, of } = await overflow(page);
    if (by > 0) wrong.push(`${at}: ${by} px too wide: ${of.join(", ")}`);
    wrong.push(...said.map((each) => `${at}: ${each}`));
    const png = await page.screenshot({
      path: join(folder, `${[name, form].filter(Boolean).join("-")}.png`),
      fullPage: !forDocs,
    });
    if (coloursOf(png) < 50) wrong.push(`${at}: empty`);
    await page.close();
  }
  await context.close();
}
await browser.close();
for (const socket of sockets) socket.close();
console.log(
  wrong.length === 0 ? `${wanted.length * FORMS.length} pictures in ${folder}` : wrong.join("\n"),
);
process.exitCode = wrong.length === 0 ? 0 : 1;
