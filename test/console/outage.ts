// Each page during a database outage: reads from the store fail. The page reports it, keeps its
// layout, and shows no empty state that would invite an operator to start over.
import assert from "node:assert/strict";
import { until } from "../kit/wait.ts";
import { overflow } from "./browser.ts";
import type { Journey } from "./journeys.ts";
import { VIEWS } from "./views.ts";

/** Commands that need no store. */
const WITHOUT =
  /^(status|config\.|explain$|models\.|policy\.|plugins\.|providers\.|fleet$|stats$|sessions\.|requests\.(list|live|stats|series)$)/;
const AWAY = "The store does not answer.";
/** A page's text for an empty state. */
const BEGINNINGS =
  /Create an account|A client needs a key|No changes yet|No admin has a token in the store|No key matches|An account is a budget/;

export const outage: Journey = {
  name: "during an outage of the database every page says so and invites to nothing",
  async run(stage, browser) {
    const wrong: string[] = [];
    const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } });
    await stage.enter(context);
    await context.route("**/admin/v1/*", async (route) => {
      const command = new URL(route.request().url()).pathname.split("/").at(-1)!;
      if (command === "session") return route.continue();
      if (command === "status") {
        const answer = await route.fetch();
        const body = (await answer.json()) as object;
        const ledgerOutage = { reason: AWAY, since: Date.now() - 60_000 };
        return route.fulfill({ json: { ...body, state: "ledger_unavailable", ledgerOutage } });
      }
      if (WITHOUT.test(command)) return route.continue();
      const error = { message: AWAY, type: "unavailable", code: "ledger_unavailable" };
      return route.fulfill({ status: 503, json: { error } });
    });
    for (const { name, address } of VIEWS) {
      if (name === "request") continue;
      const page = await context.newPage();
      const broken: string[] = [];
      page.on("pageerror", (error) => broken.push(error.message));
      await page.goto(`${stage.console}${address}`);
      await page.getByText("The ledger is unavailable").first().waitFor();
      await until(async () => (await page.locator("main.page .wait").count()) === 0);
      const text = await page.locator("main.page").innerText();
      const begun = BEGINNINGS.exec(text);
      if (begun) wrong.push(`${name}: "${begun[0]}"`);
      if (/undefined|NaN|\[object/.test(text)) wrong.push(`${name}: shows what is not there`);
      if (broken.length > 0) wrong.push(`${name}: ${broken.join(", ")}`);
      const { by } = await overflow(page);
      if (by > 0) wrong.push(`${name}: ${by} px too wide`);
      await page.close();
    }
    await context.close();
    assert.deepEqual(wrong, []);
  },
};
