// Configs of other gateways: the result is right, every name responds on a mock, a setting without
// an equivalent is reported with its line, and keys keep working unchanged.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { shiftDecimal } from "../../../plugins/importers/amounts.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { createPluginLoader } from "../../../src/cli/support/load-config.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { runCliInProcess } from "../../kit/process/command-line.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { CASES } from "./cases.ts";

let dir: string;
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), "tollgate-imports-"))));
afterAll(() => rm(dir, { recursive: true, force: true }));

let files = 0;
const file = async (text: string, name = "config.yaml") => {
  const path = join(dir, `${files++}-${name}`);
  await writeFile(path, text);
  return path;
};

interface Made {
  readonly text: string;
  readonly findings: readonly { kind: string; at: string; line: number; message: string }[];
  readonly keys: readonly { digest: string }[];
}

async function imported(source: string, text: string, ...more: readonly string[]) {
  const { code, out, err } = await runCliInProcess([
    "import",
    source,
    await file(text),
    "--json",
    ...more,
  ]);
  if (!out.startsWith("{")) throw new Error(err);
  return { code, ...(JSON.parse(out) as Made) };
}

/** Every variable that a config needs is set. */
const ENV = new Proxy({} as Record<string, string>, {
  get: (_, name) => (typeof name === "string" ? `value-of-${name}` : undefined),
  has: () => true,
  getOwnPropertyDescriptor: () => ({ value: "x", configurable: true, enumerable: true }),
});

interface Tree {
  providers: Record<
    string,
    { use: string; with?: object; credentials?: object[]; models?: object }
  >;
  models?: Record<string, unknown>;
}

/** The same config, with every provider on the mock. */
function mocked(text: string, url: string): string {
  const { models = {}, providers } = parse(text) as Tree;
  const behind = Object.entries(providers).map(([name, { credentials, models }]) => [
    name,
    {
      use: "openai-compatible",
      with: { base_url: `${url}/v1`, ...(credentials ? {} : { api_key: "k" }) },
      ...(credentials && {
        credentials: credentials.map((each) => ({ ...each, with: { api_key: "k" } })),
      }),
      ...(models && { models }),
    },
  ]);
  return stringify({
    listen: { port: 0 },
    middleware: [{ use: "auth", with: { anonymous: true } }],
    frontends: ["chat-completions"],
    providers: Object.fromEntries(behind),
    models,
  });
}

describe("every case", () => {
  let up: TestUpstream;
  let gateway: InProcessGateway;
  const told: string[] = [];
  beforeAll(async () => {
    up = await startUpstream({
      "POST /v1/chat/completions": (asked) => {
        const { model } = asked.json() as { model: string };
        told.push(model);
        return jsonResponse({
          id: "1",
          object: "chat.completion",
          created: 1,
          model,
          choices: [
            { index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" },
          ],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        });
      },
    });
    gateway = await startInProcess({
      yaml: "listen: { port: 0 }\nproviders: { demo: { use: demo } }\n",
    });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await up.close();
  });

  it("there are twenty configs of LiteLLM, and some of each other gateway", () => {
    expect(CASES.filter(({ source }) => source === "litellm").length).toBeGreaterThanOrEqual(20);
  });

  it.each(CASES.map((one) => [`${one.source}: ${one.name}`, one] as const))(
    "%s",
    async (_name, { source, text, found, asked = {}, exit = 0 }) => {
      const made = await imported(source, text, "--name", "assistant");
      expect(made.findings.map(({ kind, at, line }) => `${kind} ${line} ${at}`).sort()).toEqual(
        [...found].sort(),
      );
      expect(made.code).toBe(exit);
      const { problems } = await loadConfig(join(dir, "gateway.yaml"), {
        env: ENV,
        loadPlugin: createPluginLoader(),
        textOverride: made.text.replace(/\$\{file:[^}]*\}/g, "a-key-that-stood-there"),
      });
      expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
      if (Object.keys(asked).length === 0) return;
      await gateway.write(mocked(made.text, up.url));
      await gateway.ask("reload");
      for (const [name, models] of Object.entries(asked)) {
        told.length = 0;
        const res = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Hello." }] }),
        });
        expect([name, res.status, await res.text().then((text) => (res.ok ? "" : text))]).toEqual([
          name,
          200,
          "",
        ]);
        expect(models).toContain(told[0]);
      }
    },
  );
});

it("Portkey: a provider with an address of its own is no Azure resource", async () => {
  const target = { provider: "openai", custom_host: "https://llm.example/v1" };
  const text = JSON.stringify({ ...target, override_params: { model: "m" } });
  const made = await imported("portkey", text, "--name", "assistant");
  expect(Object.values((parse(made.text) as Tree).providers)).toEqual([
    expect.objectContaining({
      use: "openai-compatible",
      with: expect.objectContaining({ base_url: "https://llm.example/v1" }),
    }),
  ]);
});

it("keys and teams of an export: the clients' key works unchanged, its hash does not", async () => {
  const secret = "sk-AbCdEfGhIjKlMnOpQrStUv";
  const keys = await file(
    JSON.stringify([
      {
        token: digestKey(secret),
        key_alias: "ci",
        team_id: "t-1",
        models: ["all-team-models"],
        max_budget: 2.5,
        budget_duration: "30d",
        spend: 1,
      },
    ]),
    "keys.json",
  );
  const teams = await file(
    JSON.stringify([
      {
        team_id: "t-1",
        team_alias: "Research",
        max_budget: 100,
        budget_duration: "1mo",
        models: ["assistant"],
        rpm_limit: 600,
        spend: 40,
      },
    ]),
    "teams.json",
  );
  const config = await file(
    "model_list:\n- model_name: assistant\n  litellm_params: { model: openai/gpt-5-mini, api_key: os.environ/OPENAI_API_KEY }\n",
  );
  const out = join(dir, "made");
  const made = await runCliInProcess([
    "import",
    "litellm",
    config,
    "--keys",
    keys,
    "--teams",
    teams,
    "--out",
    out,
  ]);
  expect(made.err).toContain("keys import");
  expect(made.code).toBe(0);
  const tree = parse(await readFile(join(out, "gateway.yaml"), "utf8")) as {
    accounts: object;
  } & Tree;
  expect(tree.accounts).toEqual({
    research: {
      name: "Research",
      limits: ["usd=100/month", "requests=600/minute"],
      models: ["assistant"],
    },
  });
  await using gateway = await startInProcess({
    yaml: stringify({
      ...tree,
      listen: { port: 0 },
      admin: undefined,
      observers: [],
      providers: { demo: { use: "demo" } },
      models: { assistant: "demo/echo" },
    }),
  });
  const taken = await runCliInProcess([
    "keys",
    "import",
    join(out, "keys.json"),
    "-c",
    gateway.file,
  ]);
  expect([taken.code, taken.err]).toEqual([0, taken.err]);
  // Spending there counts here: one dollar of the key's 2.50.
  const shown = await runCliInProcess(["keys", "show", "ci", "--json", "-c", gateway.file]);
  const [key] = (
    JSON.parse(shown.out) as { keys: { limitUsage: { unit: string; used: string }[] }[] }
  ).keys;
  expect(key!.limitUsage.filter(({ unit }) => unit === "nano_usd").map(({ used }) => used)).toEqual(
    ["1000000000", "1000000000"],
  );
  const ask = (key: string) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "assistant", messages: [{ role: "user", content: "Hello." }] }),
    }).then(({ status }) => status);
  expect([await ask(secret), await ask(digestKey(secret))]).toEqual([200, 401]);
});

it("a key in the config moves to a separate file that only its owner can read", async () => {
  const config = await file(
    "model_list:\n- model_name: a\n  litellm_params: { model: openai/gpt-5-mini, api_key: sk-plain-0123456789 }\n",
  );
  const out = join(dir, "secret");
  const {
    code,
    out: text,
    err,
  } = await runCliInProcess(["import", "litellm", config, "--out", out]);
  expect([code, text + err]).toEqual([0, expect.not.stringContaining("sk-plain")]);
  const yaml = await readFile(join(out, "gateway.yaml"), "utf8");
  expect(yaml).not.toContain("sk-plain");
  const [, path] = /\$\{file:\.\/([^}]+)\}/.exec(yaml)!;
  expect(await readFile(join(out, path!), "utf8")).toBe("sk-plain-0123456789\n");
  expect((await runCliInProcess(["import", "litellm", config, "--out", out])).err).toContain(
    "already exists",
  );
});

it("a price per token equals the price per million tokens, to the last digit", () => {
  const digits = fc.stringMatching(/^\d{1,12}$/);
  fc.assert(
    fc.property(
      digits,
      fc.option(digits),
      fc.integer({ min: -9, max: 9 }),
      (whole, fraction, power) => {
        const text = `${whole}${fraction === null ? "" : `.${fraction}`}e${power}`;
        const made = shiftDecimal(text, 6)!;
        expect(made).toMatch(/^\d+(\.\d*[1-9])?$/);
        const scaled = (said: string, places: number) => {
          const [a, b = ""] = said.split(".");
          return BigInt(a + b.padEnd(places, "0"));
        };
        const shift = 10n ** BigInt(power + 6 + 9);
        expect(scaled(made, 30) * 10n ** 9n * 10n ** 12n).toBe(
          scaled(`${whole}.${fraction ?? ""}`, 12) * shift * 10n ** 30n,
        );
      },
    ),
  );
});
