// Each page, for each role and each scope: it shows data, or is not in the list of pages. Nothing
// is a rejection or raw JSON.
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { ROLES } from "../../src/config/sections/admin-config.ts";
import { until } from "../kit/wait.ts";
import { axe, complaints } from "./browser.ts";
import type { Journey } from "./journeys.ts";
import type { Stage } from "./stage.ts";
import { VIEWS } from "./views.ts";

const SCOPES = [undefined, "web"] as const;
/** Shorter than any text on a page. */
const LEAST = 40;

async function signedIn(stage: Stage, browser: Browser, role: string, account?: string) {
  const { secret } = (await stage.gateway.ask("admins.create", {
    name: `rights ${role} ${account ?? "all"} ${Math.random()}`,
    role,
    account,
  })) as { secret: string };
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(stage.console);
  await page.getByLabel(/token/i).fill(secret);
  await page.keyboard.press("Enter");
  await page.locator("main.page").waitFor();
  return { context, page };
}

const pagesIn = async (page: Page): Promise<string[]> => {
  const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
  const found = await links.evaluateAll((all) =>
    all.map((each) => (each as unknown as { pathname: string }).pathname),
  );
  return found.map((path) => path.replace(/^\/console/, "") || "/");
};

const pathOf = (address: string): string => address.split("?", 1)[0] || "/";

export const rights: Journey = {
  name: "every page for every role and every scope shows data or is not in the list",
  async run(stage, browser) {
    const wrong: string[] = [];
    for (const role of ROLES)
      for (const account of SCOPES) {
        const reader = `${role} of ${account ?? "all"}`;
        const { context, page } = await signedIn(stage, browser, role, account);
        const said = complaints(page);
        const refused: string[] = [];
        page.on("response", (answer) => {
          if (answer.url().includes("/admin/v1/") && answer.status() >= 400)
            refused.push(`${answer.status()} ${new URL(answer.url()).pathname}`);
        });
        const own = await pagesIn(page);
        // An admin with the role metrics and an account has no page. Every other one has some.
        if (own.length === 0 && role !== "metrics") wrong.push(`${reader}: no page`);
        for (const { name, address } of VIEWS) {
          if (name === "request" || name === "key-new") continue;
          await page.goto(`${stage.console}${address}`);
          await page.locator("main.page").waitFor();
          await until(async () => (await page.locator("main.page .wait").count()) === 0);
          const at = `${reader}, ${name}`;
          const text = (await page.locator("main.page").innerText()).trim();
          const alerts = await page.getByRole("alert").allInnerTexts();
          if (alerts.length > 0) wrong.push(`${at}: ${alerts.join(" | ")}`);
          if (/^[[{]/.test(text)) wrong.push(`${at}: raw JSON`);
          if (text.length < LEAST) wrong.push(`${at}: shows "${text}"`);
          const listed = own.includes(pathOf(address));
          const home = pathOf(address) === "/" && own[0] !== undefined;
          const told = /requires a higher role than yours|covers the whole gateway\./.test(text);
          if (listed === told && !home) wrong.push(`${at}: listed ${listed}, told ${told}`);
        }
        if (role === "viewer" && account) assert.deepEqual(await axe(page), []);
        wrong.push(...new Set(refused.map((each) => `${reader}: ${each}`)));
        wrong.push(...new Set(said.map((each) => `${reader}: ${each}`)));
        await context.close();
      }
    assert.deepEqual(wrong, []);
  },
};
