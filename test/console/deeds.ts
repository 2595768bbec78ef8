// The purpose of each page: a provider is tested, a config checked, the ledger verified and
// exported, usage filtered and saved, an account's budget set and reached, a model's facts and an
// audit entry read, an admin created and revoked.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Download, Page } from "playwright-core";
import { until } from "../kit/wait.ts";
import { axe } from "./browser.ts";
import { ask } from "./journey.ts";
import { inside, type Journey } from "./journeys.ts";

/** The file that a click saves, as text. */
async function saved(page: Page, click: () => Promise<void>): Promise<[string, string]> {
  const [file] = await Promise.all<[Promise<Download>, Promise<void>]>([
    page.waitForEvent("download"),
    click(),
  ] as never);
  return [file.suggestedFilename(), await readFile(await file.path(), "utf8")];
}

const tries: Journey = {
  name: "providers: a test call is made, and its story is the ledger's",
  run: (stage, browser) =>
    inside(stage, browser, "/providers?provider=acme", async (page) => {
      const drawer = page.getByRole("dialog");
      await drawer.getByRole("button", { name: "Test call" }).click();
      const tests = drawer.locator("ul[aria-live]");
      await tests.getByText("Works", { exact: true }).waitFor();
      assert.deepEqual(await axe(page), []);
      await tests.getByRole("link", { name: "request", exact: true }).click();
      await page.getByText("Bill of call 1").waitFor();
      await page.getByText("operator").first().waitFor();
    }),
};

const checks: Journey = {
  name: "config: another text is checked, its mistake is located, and what it changes is shown",
  run: (stage, browser) =>
    inside(stage, browser, "/config?view=check", async (page) => {
      const before = await readFile(stage.gateway.file, "utf8");
      const text = page.getByLabel("Text of the file");
      const check = page.getByRole("button", { name: "Check", exact: true });
      await text.fill("frontends: [chat-completions]\nproviders:\n  demo: { use: dmeo }\n");
      await check.click();
      await page.getByText("a reload would reject it").waitFor();
      await page.getByText("line 3, column 16").waitFor();
      assert.match(await page.getByRole("region", { name: "Line 3" }).innerText(), /use: dmeo/);
      assert.deepEqual(await axe(page), []);
      await text.fill(before.replace("pace_ms: 5", "pace_ms: 9"));
      await check.click();
      await page.getByText("The file is valid. 1 value changes").waitFor();
      const changes = page.getByRole("region", { name: "Changes" });
      assert.match(await changes.innerText(), /- \S*pace_ms: 5\n\+ \S*pace_ms: 9/);
      assert.equal(await readFile(stage.gateway.file, "utf8"), before);
    }),
};

const proves: Journey = {
  name: "ledger: proved by a noted hash, a prune planned, rows saved",
  run: (stage, browser) =>
    inside(stage, browser, "/ledger", async (page) => {
      const verify = page.getByRole("button", { name: "Verify now" });
      const noted = page.getByLabel("Recorded hash");
      await verify.click();
      await page.getByText("The ledger is valid.").waitFor();
      const facts = page.getByRole("definition").filter({ hasText: /^[0-9a-f]{64}$/ });
      await noted.fill((await facts.first().innerText()).trim());
      await verify.click();
      await page.getByText("The ledger is valid.").waitFor();
      await noted.fill("0".repeat(64));
      await verify.click();
      await page.getByText("It was truncated, or it is another ledger").waitFor();
      await page.getByLabel("Rows older than, in days").fill("1");
      await page.getByRole("button", { name: "Plan" }).click();
      await page.getByText("Freed disk space").waitFor();
      await page.getByText("tollgate ledger prune --older 1d --dry-run").waitFor();
      const [name, text] = await saved(page, () =>
        page.getByRole("button", { name: "Save rows" }).click(),
      );
      assert.match(name, /^ledger-\d{4}-\d\d-\d\d\.jsonl$/);
      const rows = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { request?: string });
      assert.ok(rows.length > 20 && rows.some(({ request }) => request !== undefined));
      assert.deepEqual(await axe(page), []);
    }),
};

const narrows: Journey = {
  name: "usage: narrowed to one model, and saved as the table has it",
  run: (stage, browser) =>
    inside(stage, browser, "/usage?range=24h&by=key", async (page) => {
      const table = page.getByRole("table");
      await table.getByRole("rowheader", { name: "nightly batch" }).waitFor();
      const all = await table.locator("tfoot").innerText();
      await page.getByRole("button", { name: "Filters", exact: true }).click();
      await page.getByLabel("Model", { exact: true }).fill("acme/lorem");
      await page.getByText("--model acme/lorem").waitFor();
      await until(async () => (await table.locator("tfoot").innerText()) !== all);
      const [name, text] = await saved(page, () =>
        page.getByRole("button", { name: "CSV" }).click(),
      );
      assert.equal(name, "usage-by-key.csv");
      const [head, ...lines] = text.trim().split("\r\n");
      assert.match(head!, /^key,name,calls,input,.*cost_usd,/);
      assert.equal(lines.length, await table.locator("tbody tr").count());
      assert.ok(lines.some((line) => line.includes(",nightly batch,")));
      assert.match(page.url(), /model=acme%2Florem|model=acme\/lorem/);
    }),
};

const accounts: Journey = {
  name: "accounts: made, its budget changed in money, met by a request whose story says so, moved, ended",
  async run(stage, browser) {
    await inside(stage, browser, "/keys", async (page) => {
      const dialog = page.getByRole("dialog");
      const detail = `${stage.console}/keys?account=spring`;
      await page.getByRole("button", { name: "New account" }).click();
      await dialog.getByLabel("Id").fill("spring");
      await dialog.getByLabel("Parent account").selectOption("house");
      await dialog.getByLabel("Limits and budgets").fill("usd=5.50/month");
      await dialog.getByRole("button", { name: "Create the account" }).click();
      await page.getByText("spring was created.").waitFor();
      const { secret } = (await stage.gateway.ask("keys.create", {
        name: "of spring",
        account: "spring",
      })) as { secret: string };
      const chat = () => ask(stage, secret);
      assert.equal((await chat()).status, 200);
      await page.goto(detail);
      await dialog.getByText("of $5.50").waitFor();
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      assert.equal(await dialog.getByLabel("Limits and budgets").inputValue(), "usd=5.5/month");
      await dialog.getByLabel("Limits and budgets").fill("usd=0.000001/month");
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByText("spring was updated.").waitFor();
      const { status, id } = await chat();
      assert.equal(status, 429);
      await page.goto(`${stage.console}/requests/${id}`);
      await dialog.getByText("429 insufficient_quota").waitFor();
      await dialog.getByText("house/spring").waitFor();
      await dialog.getByRole("link", { name: "of spring" }).waitFor();
      await page.goto(detail);
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      await dialog.getByLabel("Parent account").selectOption("data");
      await dialog.getByLabel("Limits and budgets").fill("usd=3/month");
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.getByText("house/data/spring").waitFor();
      assert.equal((await chat()).status, 200);
      await dialog.getByRole("button", { name: "Close this account" }).click();
      await dialog.getByRole("button", { name: "Yes, close spring" }).click();
      await page.getByText("spring was closed.").waitFor();
      assert.equal((await chat()).status, 403);
      assert.deepEqual(await axe(page), []);
    });
  },
};

const reads: Journey = {
  name: "models and audit: a fact with its source is found, and who made what",
  async run(stage, browser) {
    await stage.gateway.ask("accounts.create", { id: "audited", name: "Audited" });
    await inside(stage, browser, "/models", async (page) => {
      await page.getByLabel("Search").fill("acme/ech");
      const models = page.getByRole("table").last();
      await models.getByRole("row", { name: /demo\/echo/ }).waitFor({ state: "detached" });
      await models.getByRole("link", { name: "acme/echo" }).first().click();
      const facts = page.getByRole("dialog").getByRole("region", { name: "Facts", exact: true });
      const price = facts.locator("tr", { hasText: "for a million" }).first();
      assert.match(await price.innerText(), /\$2 for a million input[^]*gateway\.yaml/);
      await page.goto(`${stage.console}/audit`);
      await page.getByLabel("Search").fill("audited");
      await page.getByRole("row", { name: /accounts\.create/ }).click();
      const entry = page.getByRole("dialog");
      await entry.getByText("shell, owner").waitFor();
      await entry.getByRole("region", { name: "Input" }).last().waitFor();
      assert.deepEqual(await axe(page), []);
    });
  },
};

const lets: Journey = {
  name: "admins: one is made, comes in by its token, reads and changes nothing, and is shut out when it is ended",
  async run(stage, browser) {
    await inside(stage, browser, "/admins", async (page) => {
      const dialog = page.getByRole("dialog");
      await page.getByRole("button", { name: "New admin" }).click();
      await dialog.getByLabel("Name").fill("reader");
      await dialog.getByRole("button", { name: "Create the admin" }).click();
      const token = (await dialog.locator(".secret").innerText()).trim();
      await dialog.getByRole("button", { name: "Done" }).click();
      const other = await browser.newContext();
      const theirs = await other.newPage();
      await theirs.goto(stage.console);
      await theirs.getByLabel(/token/i).fill(token);
      await theirs.keyboard.press("Enter");
      await theirs.getByRole("heading", { name: "Overview" }).waitFor();
      await theirs.goto(`${stage.console}/keys?new=key`);
      await theirs.getByRole("link", { name: "nightly batch" }).waitFor();
      assert.equal(await theirs.getByRole("button", { name: "New key" }).count(), 0);
      assert.equal(await theirs.getByRole("dialog").count(), 0);
      const row = page.locator("tr", { hasText: "reader" }).first();
      await row.getByRole("button", { name: "Revoke" }).click();
      await row.getByRole("button", { name: "Yes" }).click();
      await page.getByText("reader was revoked, and its sessions were ended.").waitFor();
      await theirs.goto(`${stage.console}/usage`);
      await theirs.getByText("tollgate console").waitFor();
      await other.close();
    });
  },
};

const dates: Journey = {
  name: "audit: narrowed to days, in the page's address and on the command line",
  run: (stage, browser) =>
    inside(stage, browser, "/audit", async (page) => {
      const table = page.getByRole("region", { name: "Audit" });
      await table.getByText("keys.create").first().waitFor();
      await page.getByLabel("To", { exact: true }).fill("2020-01-01");
      await page.getByText("No entry matches these filters").waitFor();
      await page.getByText("tollgate audit --until 2020-01-01").waitFor();
      assert.match(page.url(), /to=2020-01-01/);
      await page.getByRole("button", { name: "All dates" }).click();
      await table.getByText("keys.create").first().waitFor();
      await page.getByLabel("From", { exact: true }).fill("2020-01-01");
      await table.getByText("keys.create").first().waitFor();
      assert.deepEqual(await axe(page), []);
    }),
};

const applies: Journey = {
  name: "accounts: one of gateway.yaml is changed as lines to apply, and nothing is written",
  run: (stage, browser) =>
    inside(stage, browser, "/keys?account=house", async (page) => {
      const before = await readFile(stage.gateway.file, "utf8");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      await dialog.getByLabel("Limits and budgets").fill("usd=55.5/month");
      await dialog.getByRole("button", { name: "Show the change as YAML" }).click();
      const lines = dialog.getByRole("region", { name: "Change of gateway.yaml" });
      const text = await lines.innerText();
      assert.match(text, /^- {7}- usd=40\/month$/m);
      assert.match(text, /^\+ {7}- usd=55\.5\/month$/m);
      assert.equal(await readFile(stage.gateway.file, "utf8"), before);
      assert.deepEqual(await axe(page), []);
    }),
};

const phones: Journey = {
  name: "on a phone a table that is wider than the screen says so, until its end is seen",
  run: (stage, browser) =>
    inside(
      stage,
      browser,
      "/fleet",
      async (page) => {
        const gateways = page.getByRole("region", { name: "Gateways", exact: true });
        const hint = page.locator(".table", { has: gateways }).getByText("Scroll for more columns");
        await hint.waitFor();
        await gateways.evaluate((place) => {
          place.scrollLeft = 10_000;
        });
        await hint.waitFor({ state: "hidden" });
        assert.deepEqual(await axe(page), []);
      },
      { viewport: { width: 390, height: 844 } },
    ),
};

export const DEEDS: readonly Journey[] = [
  tries,
  checks,
  proves,
  narrows,
  accounts,
  reads,
  lets,
  dates,
  applies,
  phones,
];
