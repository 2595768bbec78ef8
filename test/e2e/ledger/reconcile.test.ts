// Reconciliation through the command line: the bill of a fake provider is compared with the ledger
// of a running gateway, and the ledger is corrected.
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { JsonObject } from "tollgate/plugin";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { runTollgate } from "../../kit/process/command-line.ts";

let up: TestUpstream;
let at: InProcessGateway;
let costs: readonly JsonObject[] = [];
let usage: readonly JsonObject[] = [];
const day = () => new Date().toISOString().slice(0, 10);
const bucket = (results: readonly JsonObject[]) =>
  jsonResponse({ data: [{ start_time: Date.parse(day()) / 1_000, results }], has_more: false });

beforeAll(async () => {
  up = await startUpstream({
    ...scriptedModel((asked) => {
      const silent = asked.body.includes("silently");
      return silent
        ? say("Hello there").usage(null)
        : say("Hello").usage({ input: 1_000, output: 100 });
    }),
    "GET /v1/organization/costs": () => bucket(costs),
    "GET /v1/organization/usage/completions": () => bucket(usage),
  });
  at = await startInProcess({
    yaml: `
frontends: [chat-completions]
middleware: [auth, limits]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: "k" }
    models: { gpt-6: { price: { input: 2, output: 10 } } }
observers:
  - use: reconcile
    with: { bills: { up: { from: openai, key: "sk-admin-0123456789", base_url: "${up.url}" } } }
`,
  });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

async function ask(model: string, words: string, key = at.key): Promise<void> {
  const answer = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: words }] }),
  });
  await answer.text();
}

const reconcile = (...more: string[]) =>
  runTollgate(at, ["reconcile", "up", "--day", day(), ...more]);

it("names the cause of each difference, and corrects the calls", async () => {
  await ask("up/gpt-6", "hi");
  await ask("up/gpt-5-mini", "hi");
  // Each at the provider's rates: gpt-6 as in the ledger, gpt-5-mini without a price there, and
  // usage of a model that the gateway never called.
  costs = [
    { amount: { value: 0.002, currency: "usd" }, line_item: "gpt-6-2026-05-01, input" },
    { amount: { value: 0.001, currency: "usd" }, line_item: "gpt-6-2026-05-01, output" },
    { amount: { value: 0.00025, currency: "usd" }, line_item: "gpt-5-mini-2025-08-07, input" },
    { amount: { value: 0.0002, currency: "usd" }, line_item: "gpt-5-mini-2025-08-07, output" },
    { amount: { value: 0.5, currency: "usd" }, line_item: "gpt-4.1-2025-04-14, input" },
    { amount: { value: 0.01, currency: "usd" }, line_item: "web search tool calls" },
  ];
  usage = [
    { model: "gpt-6-2026-05-01", input_tokens: 1_000, output_tokens: 100, num_model_requests: 1 },
    {
      model: "gpt-5-mini-2025-08-07",
      input_tokens: 1_000,
      output_tokens: 100,
      num_model_requests: 1,
    },
    { model: "gpt-4.1-2025-04-14", input_tokens: 250_000, output_tokens: 0, num_model_requests: 1 },
  ];
  const first = await reconcile();
  expect(first.code).toBe(1);
  expect(first.out).toContain("ledger $0.003, bill $0.51345, difference $0.51045");
  expect(first.out).toMatch(/unpriced +\$0\.00045 +calls that had no price/);
  expect(first.out).toMatch(/outside +\$0\.5 +usage that did not pass the gateway/);
  expect(first.out).toMatch(/other_charge +\$0\.01/);

  const asked = up.requests.filter(({ path }) => path.startsWith("/v1/organization/"));
  expect(
    asked.every(({ headers }) => headers["authorization"] === "Bearer sk-admin-0123456789"),
  ).toBe(true);

  const adjusted = await reconcile("--adjust", "--reason", "invoice 4711");
  expect(adjusted.err).toContain("1 correction written");
  const again = await reconcile();
  expect(again.out).toContain("ledger $0.00345, bill $0.51345, difference $0.51");
  expect(again.out).not.toContain("unpriced");
  const audit = await runTollgate(at, ["audit", "--json"]);
  expect(audit.out).toContain("ledger.adjust");
});

it("names estimates, and calls at another rate", async () => {
  await ask("up/gpt-6", "silently");
  costs = [
    { amount: { value: 0.009, currency: "usd" }, line_item: "gpt-6-2026-05-01, input" },
    { amount: { value: 0.002, currency: "usd" }, line_item: "gpt-6-2026-05-01, output" },
  ];
  usage = [
    { model: "gpt-6-2026-05-01", input_tokens: 3_000, output_tokens: 200, num_model_requests: 2 },
  ];
  const { out } = await reconcile("--json");
  const { causes, groups } = JSON.parse(out) as {
    causes: Record<string, string>;
    groups: { model: string; differences: { cause: string; attempts: string[] }[] }[];
  };
  expect(Object.keys(causes).toSorted()).toEqual(["estimated", "price", "unbilled"]);
  expect(causes["price"]).toBe("0.001");
  const mine = groups.find(({ model }) => model === "gpt-6")!;
  expect(mine.differences.find(({ cause }) => cause === "estimated")!.attempts).toHaveLength(1);
});

it("rejects unknown providers, periods, and corrections without a reason", async () => {
  const unknown = await runTollgate(at, ["reconcile", "nobody", "--day", day()]);
  expect(unknown.err).toContain('No bill is configured for "nobody"');
  expect((await runTollgate(at, ["reconcile", "up"])).err).toContain("either --day or --month");
  expect((await runTollgate(at, ["reconcile", "up", "--month", "2026-13"])).err).toContain(
    "Invalid --month",
  );
  expect((await reconcile("--adjust")).err).toContain("must be used together");
});

it("forecasts spend, and when budgets are exhausted", async () => {
  const made = await at.ask("keys.create", { name: "capped", limits: ["usd=1/total"] });
  await ask("up/gpt-6", "hi", (made as { secret: string }).secret);
  const { out } = await runTollgate(at, ["usage", "--forecast"]);
  expect(out).toMatch(/^per day +\$\d.* +mean of today$/m);
  expect(out).toMatch(/^month projected +\$\d/m);
  expect(out).toMatch(/^key capped +usd=1\/total +\$0\.003 +\$\d\S* +\d{4}-\d\d-\d\d \d\d:\d\d$/m);
  const json = JSON.parse((await runTollgate(at, ["usage", "--forecast", "--json"])).out) as object;
  expect(Object.keys(json).toSorted()).toEqual(["budgets", "days", "month", "perDayUsd"]);
});
