// `tollgate init`: the questions on a terminal, the options that replace them, and that the written
// file passes check.
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parse } from "yaml";
import { expect, it } from "vitest";
import { askStarterOptions } from "../../src/cli/init/starter-config.ts";
import { createTestFolder } from "../kit/process/command-line.ts";

const KNOWN = ["demo", "openai", "anthropic"];

async function answered(found: readonly string[], ...answers: string[]) {
  const heard: string[] = [];
  const made = await askStarterOptions({
    builtInProviders: KNOWN,
    detectedProviders: found,
    ask: async (question) => (heard.push(question), answers.shift() ?? ""),
    print: (text) => void heard.push(text),
  });
  return { made, heard: heard.join("\n") };
}

it("Enter accepts the detected value", async () => {
  const { made, heard } = await answered(["openai"]);
  expect(made).toEqual({
    names: ["openai"],
    server: undefined,
    budget: undefined,
    retention: "400d",
  });
  expect(heard).toContain("Provider API keys are set for: openai.");
  expect((await answered([])).made.names).toEqual(["demo"]);
});

it("asks again after an invalid answer, with the reason", async () => {
  const { made, heard } = await answered(
    [],
    "antropic",
    "anthropic, demo",
    "nowhere",
    "http://127.0.0.1:1/v1",
    "much",
    "50",
    "x",
    "forever",
  );
  expect(heard).toContain('Did you mean "anthropic"?');
  expect(made).toEqual({
    names: ["anthropic", "demo"],
    server: "http://127.0.0.1:1/v1",
    budget: "50",
    retention: undefined,
  });
});

it("ends if the input ends", async () => {
  const ask = async () => "nothing known";
  await expect(
    askStarterOptions({ builtInProviders: KNOWN, detectedProviders: [], ask, print() {} }),
  ).rejects.toThrow("Too many invalid answers");
});

it("flags: detects set variables, writes the file with its schema comment, and checks it", async () => {
  await using here = await createTestFolder();
  const args = [
    "init",
    "--detect",
    "--server",
    "http://127.0.0.1:1/v1",
    "--budget",
    "12.50",
    "--retention",
    "90d",
    "--write",
  ];
  const env = { OPENAI_API_KEY: "sk-x", ANTHROPIC_API_KEY: "" };
  const { code, out, err } = await here.tollgate(args, { env });
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^Wrote gateway\.yaml: no problems/);
  const text = await readFile(join(here.path, "gateway.yaml"), "utf8");
  // An editor reads an existing schema.
  const [, schema = ""] = /^# yaml-language-server: \$schema=(.*)/.exec(text) ?? [];
  expect(JSON.parse(await readFile(resolve(here.path, schema), "utf8"))).toHaveProperty("$schema");
  expect(parse(text)).toMatchObject({
    ledger: { retention: "90d" },
    key_defaults: { limits: ["usd=12.50/month"] },
    providers: { openai: { use: "openai" }, local: { use: "openai-compatible" } },
  });
  expect(Object.keys((parse(text) as { providers: object }).providers)).toEqual([
    "openai",
    "local",
  ]);
  expect(await here.tollgate(args, { env })).toMatchObject({
    code: 1,
    err: expect.stringContaining("--force"),
  });
  expect(await here.tollgate([...args, "--force"], { env })).toMatchObject({ code: 0 });
}, 60_000);
