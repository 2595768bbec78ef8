// Names of other products: an error suggests the right name, and the suggested config is valid.
import { expect, it } from "vitest";
import { createPluginLoader } from "../../../src/cli/support/load-config.ts";
import { loadConfig } from "../../../src/config/load-config.ts";

const checked = async (text: string) => {
  const { problems } = await loadConfig(`${import.meta.dirname}/gateway.yaml`, {
    env: {},
    loadPlugin: createPluginLoader(),
    textOverride: text,
  });
  return problems.filter(({ severity }) => severity === "error");
};
const DEMO = "providers: { demo: { use: demo } }\n";

it.each([
  ["providers: { g: { use: gemini } }", "google"],
  [`${DEMO}frontends: [google]`, "gemini"],
  [`${DEMO}frontends: [anthropic]`, "messages"],
  [`${DEMO}observers: [prometheus]`, "metrics"],
])("%s: suggests %s", async (text, name) => {
  const [problem] = await checked(text);
  expect(problem?.hint).toContain(`did you mean "${name}"?`);
});

it.each([
  ["budget: 100", "limits"],
  ["rate_limits: { rpm: 60 }", "limits"],
  ["zdr: true", "middleware"],
  ["access_log: true", "observers"],
  ["accounts: { a: { budget: 100 } }", "limits"],
  ["accounts: { a: { rate_limits: 60 } }", "limits"],
  ["middleware: [{ use: limits, with: { rpm: 60 } }]", "limits"],
])("%s: a hint with the right spelling", async (text, key) => {
  const [problem] = await checked(`${DEMO}${text}`);
  const written = /write (\w+: \[.*?\}?\])(?=$|,| under)/.exec(problem?.hint ?? "")?.[1];
  expect(written, problem?.hint).toMatch(new RegExp(`^${key}:`));
  const where = key === "limits" ? `accounts: { a: { ${written} } }` : written;
  expect(await checked(`${DEMO}${where}`)).toEqual([]);
});
