// Monitoring in the console: attention items, requests of the whole ledger, time ranges, and
// outages.
import assert from "node:assert/strict";
import { axe } from "./browser.ts";
import { inside, type Journey } from "./journeys.ts";

const attends: Journey = {
  name: "what needs attention is in one list, each with the page that fixes it",
  run: (stage, browser) =>
    inside(stage, browser, "", async (page) => {
      const todo = page.locator(".todo-area");
      await todo.getByText("has used 80% of requests=5/day").waitFor();
      await todo.getByText("is not mounted: TOLLGATE_SPARE_KEY is not set").waitFor();
      await todo.getByRole("link", { name: "acme/slow" }).click();
      await page.getByRole("dialog").getByText("Model metadata and sources").waitFor();
      await page.goto(`${stage.console}?range=yesterday`);
      for (const chart of ["Requests", "Error rate", "Time to first token", "Spend by model"])
        await page.getByRole("heading", { name: chart, exact: true }).waitFor();
      await page.getByRole("link", { name: "Key evals" }).click();
      await page.getByRole("dialog").waitFor();
      assert.match(page.url(), /\/keys\?key=/);
    }),
};

const searches: Journey = {
  name: "requests of the whole ledger are searched, by time, status, account, and label",
  run: (stage, browser) =>
    inside(stage, browser, "/requests", async (page) => {
      await page.getByLabel("Time", { exact: true }).selectOption("7d");
      await page.getByText("Searched back to").waitFor();
      await page.getByLabel("Status").selectOption("failed");
      await page.locator("td").getByText("overloaded").first().waitFor();
      assert.equal(await page.locator("td .mark.good").count(), 0);
      await page.getByLabel("Status").selectOption("");
      await page.getByLabel("Label").fill("team=data");
      await page.keyboard.press("Enter");
      await page.getByText("nightly batch").first().waitFor();
      await page.getByText("support bot").first().waitFor({ state: "hidden" });
      assert.match(page.url(), /label=team%3Ddata/);
      await page.getByRole("button", { name: "Search further back" }).first().click();
      await page.getByLabel("Label").fill("");
      await page.getByLabel("Account").fill("web");
      await page.keyboard.press("Enter");
      await page.getByText("house/web").first().waitFor();
      await page.getByText("nightly batch").first().waitFor({ state: "hidden" });
      await page.getByRole("link", { name: "acme/echo" }).first().click();
      await page.getByRole("dialog").getByText("Bill of call 1").waitFor();
      assert.deepEqual(await axe(page), []);
      await page.goto(`${stage.console}/requests?range=2020-01-01T00:00_2020-02-01T00:00`);
      await page.getByText("No request in the ledger matches.").waitFor();
    }),
};

const ranges: Journey = {
  name: "usage has today, yesterday and custom times, and its filters are folded away",
  run: (stage, browser) =>
    inside(stage, browser, "/usage", async (page) => {
      await page.getByRole("button", { name: "Yesterday" }).click();
      await page.getByRole("link", { name: "acme/echo" }).first().waitFor();
      assert.match(page.url(), /range=yesterday/);
      await page.getByRole("button", { name: "Custom" }).click();
      await page.getByLabel("From").waitFor();
      assert.match(page.url(), /range=\d{4}-\d\d-\d\dT\d\d%3A\d\d_/);
      assert.equal(await page.getByLabel("Credential").count(), 0);
      await page.getByRole("button", { name: "Filters" }).click();
      await page.getByLabel("Model", { exact: true }).fill("acme/lorem");
      await page.getByRole("button", { name: "Filters" }).click();
      await page.getByRole("button", { name: "Remove the filter model" }).click();
      await page.getByRole("link", { name: "acme/think" }).first().waitFor();
      assert.deepEqual(await axe(page), []);
    }),
};

const outages: Journey = {
  name: "a provider has its outages and its latency over time, and a name its models",
  run: (stage, browser) =>
    inside(stage, browser, "/providers", async (page) => {
      await page
        .getByRole("img", { name: /calls in 24 hours succeeded/ })
        .first()
        .waitFor();
      await page.getByRole("link", { name: "acme" }).click();
      const drawer = page.getByRole("dialog");
      await drawer.getByText("12 min 14 s").waitFor();
      await drawer.getByRole("img", { name: /Time to first token/ }).waitFor();
      assert.deepEqual(await axe(page), []);
      await page.goto(`${stage.console}/models?q=fast`);
      const aliases = page.getByRole("region", { name: "Aliases" });
      await aliases.getByRole("link", { name: "demo/echo" }).waitFor();
      await aliases.getByText("in the listed order").waitFor();
    }),
};

export const WATCHING: readonly Journey[] = [attends, searches, ranges, outages];
