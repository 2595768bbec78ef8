// Operators' tasks in the console, in a browser: each journey in its own context, signed in by its
// own link.
import assert from "node:assert/strict";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { BESIDE_OTHERS } from "../rig/rig.ts";
import { axe, complaints, overflow } from "./browser.ts";
import { firstRun } from "./first-run.ts";
import type { Stage } from "./stage.ts";
import { VIEWS } from "./views.ts";

export interface Journey {
  readonly name: string;
  run(stage: Stage, browser: Browser): Promise<void>;
}

type Options = NonNullable<Parameters<Browser["newContext"]>[0]>;

const VIOLATIONS = `addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
  console.error("policy: " + violatedDirective + " " + blockedURI));`;

/** Signed in, with a page whose problems fail the journey. */
export async function inside(
  stage: Stage,
  browser: Browser,
  address: string,
  walk: (page: Page, context: BrowserContext) => Promise<void>,
  options: Options = {},
): Promise<void> {
  const context = await browser.newContext(options);
  await context.addInitScript(VIOLATIONS);
  await stage.enter(context);
  const page = await context.newPage();
  const said = complaints(page);
  await page.goto(`${stage.console}${address}`);
  await walk(page, context);
  await context.close();
  assert.deepEqual(said, []);
}

const looks = (colorScheme: "light" | "dark"): Journey => ({
  name: `every view in ${colorScheme}: shown, no finding of axe, no complaint, no wider than its window`,
  run: async (stage, browser) => {
    const found: string[] = [];
    for (const { name, address, shows } of VIEWS)
      await inside(
        stage,
        browser,
        address,
        async (page) => {
          await page.getByText(shows).first().waitFor();
          found.push(...(await axe(page)).map((each) => `${name}: ${each}`));
          const { by, of } = await overflow(page);
          if (by > 0) found.push(`${name}: ${by} px too wide: ${of.join(", ")}`);
        },
        { colorScheme, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" },
      );
    assert.deepEqual(found, []);
  },
});

const door: Journey = {
  name: "a link opens once, and what is not signed in sees the door",
  async run(stage, browser) {
    const { url } = (await stage.gateway.ask("console")) as { url: string };
    const first = await browser.newContext();
    const page = await first.newPage();
    await page.goto(url);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
    const cookies = await first.cookies();
    assert.deepEqual(
      cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
      [[true, "Strict"]],
    );
    const second = await (await browser.newContext()).newPage();
    await second.goto(url);
    await second.getByRole("alert").waitFor();
    assert.deepEqual(await axe(second), []);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("tollgate console").waitFor();
    await page.goto(`${stage.console}/usage`);
    await page.getByText("tollgate console").waitFor();
    await first.close();
    await second.context().close();
  },
};

const explains: Journey = {
  name: "routing is explained as a key and under zero data retention",
  async run(stage, browser) {
    await stage.gateway.ask("keys.create", { name: "narrow", models: ["demo/*"] });
    await inside(stage, browser, "/routing?model=fast&key=narrow", async (page) => {
      await page.getByText("model_not_allowed").first().waitFor();
      await page.getByText("tollgate explain fast -f chat-completions --key narrow").waitFor();
      await page.getByLabel("Key", { exact: true }).fill("");
      await page.getByRole("button", { name: "Explain" }).click();
      await page.getByText("is called first").waitFor();
      await page.getByLabel("Service-ZDR").selectOption("strict");
      await page.getByText("--strict").waitFor();
      assert.match(page.url(), /zdr=strict/);
      assert.deepEqual(await axe(page), []);
    });
  },
};

const lives: Journey = {
  name: "a request is seen while it is under way, and once when it is over",
  run: (stage, browser) =>
    inside(stage, browser, "/requests", async (page) => {
      await page.getByText("acme/echo").first().waitFor();
      const asked = stage.chat("demo/slow", "900 words");
      await page.getByText("calling demo").first().waitFor();
      await asked;
      await page.getByText("calling demo").first().waitFor({ state: "hidden" });
      await page.getByText("demo/slow").first().waitFor();
    }),
};

const keeps: Journey = {
  name: "a backup is made from the ledger's page and stands in its list",
  run: (stage, browser) =>
    inside(stage, browser, "/ledger", async (page) => {
      const file = `${stage.gateway.dir}/from-the-page.tar`;
      await page.getByLabel("New file on the gateway's machine").fill(file);
      await page.getByRole("button", { name: "Back up now" }).click();
      await page.getByRole("table").getByText(file).waitFor();
      assert.deepEqual(await axe(page), []);
    }),
};

const follows: Journey = {
  name: "a request appears as it ends, and the plot grows",
  run: (stage, browser) =>
    inside(stage, browser, "/requests", async (page) => {
      await page.getByText("acme/echo").first().waitFor();
      await stage.chat("acme/tools", "A request that was not there before");
      await page.getByText("acme/tools").first().waitFor();
      await page.getByLabel("Status").selectOption("failed");
      await page.getByText("acme/tools").first().waitFor({ state: "hidden" });
      assert.match(page.url(), /status=failed/);
      await page.goto(`${stage.console}/usage?range=24h&of=calls`);
      await page.getByRole("link", { name: "acme/tools" }).waitFor();
      await page.getByRole("button", { name: "Table" }).click();
      await page
        .getByRole("region", { name: /Calls by model/ })
        .last()
        .waitFor();
    }),
};

const PAYLOADS = [
  `<img src=x onerror="window.hit=1">`,
  `"><script>window.hit=1</script>`,
  `javascript:window.hit=1`,
  "{{constructor.constructor('window.hit=1')()}}",
  "</title><svg/onload=window.hit=1>",
];

const strangers: Journey = {
  name: "names, labels and models that are markup are shown as text",
  async run(stage, browser) {
    for (const [i, name] of PAYLOADS.entries()) {
      const label = name.replace(/[^ -~]/g, "").slice(0, 60);
      const { secret } = (await stage.gateway.ask("keys.create", {
        name: `${name} ${i}`,
        labels: { note: label },
      })) as { secret: string };
      await stage.chat("acme/echo", "Hello", secret);
      await stage.chat(name, "Hello", secret);
    }
    const views = ["", "/usage?by=key", "/usage?by=label", "/requests", "/keys", "/ledger"];
    const wild = `/usage?by=${encodeURIComponent(PAYLOADS[0]!)}&model=${encodeURIComponent(PAYLOADS[1]!)}`;
    for (const address of [...views, `/requests/${encodeURIComponent(PAYLOADS[0]!)}`, wild]) {
      const context = await browser.newContext();
      await stage.enter(context);
      const page = await context.newPage();
      await page.goto(`${stage.console}${address}`);
      await page.locator("main.page").waitFor();
      await page.waitForLoadState("networkidle", { timeout: 2_000 }).catch(() => {});
      assert.equal(await page.evaluate("window.hit"), undefined, address);
      assert.equal(await page.locator("main.page img, main.page script").count(), 0, address);
      await context.close();
    }
  },
};

const keyboard: Journey = {
  name: "the keyboard alone: skip, go to a page, sort, open and leave a story",
  run: (stage, browser) =>
    inside(stage, browser, "", async (page) => {
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to the page");
      await page.getByRole("link", { name: "Requests", exact: true }).first().focus();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Requests", exact: true }).waitFor();
      assert.equal(await page.evaluate("document.activeElement.id"), "page");
      await page.getByRole("button", { name: "Duration" }).focus();
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("th[aria-sort=descending]").textContent(), "Duration↓");
      await page.getByRole("link", { name: "acme/echo" }).first().focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByText("Timeline").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.goBack();
    }),
};

const phone: Journey = {
  name: "at 320 pixels every view fits, and the list of pages opens and closes",
  run: (stage, browser) =>
    inside(
      stage,
      browser,
      "",
      async (page) => {
        await page.getByRole("button", { name: "Pages" }).click();
        await page.getByRole("link", { name: "Usage", exact: true }).click();
        await page.getByRole("heading", { name: "Usage" }).waitFor();
        assert.equal(await page.getByRole("navigation", { name: "Pages" }).isVisible(), false);
        for (const { name, address, shows } of VIEWS) {
          await page.goto(`${stage.console}${address}`);
          await page.getByText(shows).first().waitFor();
          const { by, of } = await overflow(page);
          assert.deepEqual([name, by, of], [name, 0, []]);
        }
      },
      { viewport: { width: 320, height: 640 } },
    ),
};

/** For a page that was opened before, as on every day except the first. */
const PAINT_MS = process.argv.includes("--alone") ? 300 : 300 * BESIDE_OTHERS;

/**
 * It is stored a moment later. The page's own policy allows no code in text that waits for it, so
 * the page reports it.
 */
const PAINTED = `new Promise((seen) =>
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) seen(paint.startTime);
  }).observe({ type: "paint", buffered: true }))`;

const paints: Journey = {
  name: `the first paint, in the median of nine, within ${PAINT_MS} ms`,
  run: (stage, browser) =>
    inside(stage, browser, "", async (page) => {
      const times: number[] = [];
      for (let i = 0; i < 9; i++) {
        await page.reload();
        await page.getByRole("heading", { name: "Overview" }).waitFor();
        times.push(await page.evaluate<number>(PAINTED));
      }
      const median = times.toSorted((a, b) => a - b)[4]!;
      assert.ok(median <= PAINT_MS, `${times.map(Math.round).join(", ")} ms`);
    }),
};

export const JOURNEYS: readonly Journey[] = [
  door,
  firstRun,
  explains,
  lives,
  keeps,
  follows,
  keyboard,
  phone,
  strangers,
  paints,
  looks("light"),
  looks("dark"),
];
