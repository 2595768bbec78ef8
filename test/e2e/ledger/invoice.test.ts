// Invoices of a running gateway: the charges of an account in another currency, with a margin.
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { runTollgate } from "../../kit/process/command-line.ts";

let up: TestUpstream;
let at: InProcessGateway;
const day = () => new Date().toISOString().slice(0, 10);
const month = () => day().slice(0, 7);
beforeAll(async () => {
  up = await startUpstream(scriptedModel(() => say("Hello").usage({ input: 1_000, output: 100 })));
  at = await startInProcess({
    files: {
      "rates.csv": "date,rate\n2026-01-01,0.5\n",
      "late.csv": "date,rate\n2999-01-01,0.5\n",
    },
    yaml: `
frontends: [chat-completions]
middleware: [auth, limits]
accounts: { acme: {}, research: { parent: acme }, other: {} }
views:
  europe: { currency: EUR, rates: ./rates.csv, margin: "10", accounts: [acme] }
  late: { currency: EUR, rates: ./late.csv }
  bare: { currency: CHF }
providers:
  up:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", api_key: "k" }
    models: { "gpt-<b>": { price: { input: 2, output: 10 } } }
`,
  });
  const made = await at.ask("keys.create", { name: "r", account: "research" });
  const answer = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${(made as { secret: string }).secret}`,
    },
    body: JSON.stringify({ model: "up/gpt-<b>", messages: [{ role: "user", content: "hi" }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

const invoice = (...more: string[]) =>
  runTollgate(at, ["invoice", "--account", "acme", "--month", month(), ...more]);

it("has the charges of nested accounts at the rate of the day, with the margin", async () => {
  const { code, out } = await invoice("--json");
  expect(code).toBe(0);
  // $0.003 at 0.5 and 10%.
  expect(JSON.parse(out)).toMatchObject({
    account: "acme",
    currency: "EUR",
    margin: "10",
    lines: [
      { day: day(), model: "up/gpt-<b>", calls: 1, usd: "0.003", rate: "0.5", amount: "0.00165" },
    ],
    usd: "0.003",
    amount: "0.00165",
    unpriced: 0,
  });
  const table = await invoice();
  expect(table.out).toMatch(/^total +0\.003 +0\.00165$/m);
});

it("is a CSV table or a page in which names are escaped", async () => {
  const csv = await invoice("--csv");
  expect(csv.out.trim().split(/\r?\n/)).toEqual([
    "day,model,calls,input_tokens,output_tokens,usd,rate,margin_percent,amount,currency",
    `${day()},up/gpt-<b>,1,1000,100,0.003,0.5,10,0.00165,EUR`,
  ]);
  const page = await invoice("--html");
  expect(page.out).toContain("<td>up/gpt-&#60;b&#62;</td>");
  expect(page.out).not.toContain("<b>");
  expect(page.out).not.toContain("<script");
});

it("is in US dollars without a view, and rejects unknown views, months, and days without a rate", async () => {
  const of = (account: string) =>
    runTollgate(at, ["invoice", "--account", account, "--month", month(), "--json"]);
  expect(JSON.parse((await of("other")).out)).toMatchObject({ currency: "USD", amount: "0.00" });
  expect(JSON.parse((await of("research")).out)).toMatchObject({ currency: "EUR" });
  expect((await invoice("--view", "late")).err).toContain(`No exchange rate is known for ${day()}`);
  expect((await invoice("--view", "bare")).err).toContain("The view in CHF has no rate");
  expect((await invoice("--view", "asia")).err).toContain("Known views: europe, late, bare");
  expect((await runTollgate(at, ["invoice", "--account", "acme"])).err).toContain(
    "Pass --account and --month",
  );
});

it("is also the currency of usage reports and the FOCUS export, which keep the US dollars", async () => {
  const usage = (...more: string[]) =>
    runTollgate(at, ["usage", "--account", "acme", "--view", "europe", ...more]);
  const json = JSON.parse((await usage("--json", "--by", "model")).out) as object;
  expect(json).toMatchObject({
    by: ["model"],
    currency: "EUR",
    margin: "10",
    rows: [{ model: "up/gpt-<b>", calls: 1, usd: "0.003", amount: "0.00165" }],
    total: { calls: 1, usd: "0.003", amount: "0.00165" },
  });
  expect((await usage()).out).toMatch(/eur[^\n]*\n.* 0\.00165\b/);
  const [head, line] = (await usage("--csv", "--by", "model")).out.split(/\r?\n/);
  expect(head).toContain("usd,unpriced,estimated,margin_percent,amount,currency");
  expect(line).toContain(",0.003,0,0,10,0.00165,EUR");
  const focus = async (...more: string[]) => {
    const { out } = await runTollgate(at, ["usage", "--account", "acme", "--focus", ...more]);
    const [names, cells] = out.split(/\r?\n/).map((row) => row.split(","));
    return Object.fromEntries(names!.map((name, i) => [name, cells![i]]));
  };
  expect(await focus("--view", "europe")).toMatchObject({
    BillingCurrency: "EUR",
    BilledCost: "0.00165",
    EffectiveCost: "0.00165",
    ContractedCost: "0.00165",
    ListCost: "0.0015",
    PricingCurrency: "USD",
    PricingCurrencyEffectiveCost: "0.003",
    x_exchange_rate: "0.5",
    x_margin_percent: "10",
  });
  expect(await focus()).toMatchObject({
    BillingCurrency: "USD",
    BilledCost: "0.003",
    ListCost: "0.003",
    PricingCurrencyEffectiveCost: "0.003",
  });
  const unknown = await runTollgate(at, ["usage", "--view", "asia"]);
  expect(unknown.err).toContain("Known views: europe, late, bare");
  expect((await usage("--plot")).err).toContain("--plot and --view cannot be used together");
});
