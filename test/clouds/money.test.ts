// Bills of the clouds and ledger rows in failures: truncated responses, a budget with concurrent
// requests, and a killed gateway. Each package is a plugin of its own here, loaded by its path,
// like an operator's.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { LedgerEntry, Usage } from "tollgate/plugin";
import { say, type ScriptedResponse, type ModelScript, type TestUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../kit/process/daemon.ts";
import { until } from "../kit/wait.ts";
import { CLAUDE, fakeAws, KEYS, MODEL, REGION } from "./aws-fake.ts";
import { fakeAzure, KEY } from "./azure-fake.ts";
import { ACCOUNT, fakeGoogle } from "./google-fake.ts";

interface Fake extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly url: string;
  says: ModelScript;
  bend: ((answer: ScriptedResponse) => ScriptedResponse) | undefined;
}

const PRICE = 'price: { input: "3", output: "15" }';
/** In nano-dollars. */
const charged = (bill: readonly { readonly usage: Usage }[]): bigint =>
  bill.reduce(
    (sum, { usage }) =>
      sum + BigInt(usage.input ?? 0) * 3_000n + BigInt(usage.output ?? 0) * 15_000n,
    0n,
  );

const plugin = (name: string) =>
  join(import.meta.dirname, `../../plugins/providers/${name}/index.ts`);
const CLOUDS = {
  "aws, Converse": [
    fakeAws,
    MODEL,
    "aws",
    (url: string) =>
      `region: ${REGION}, runtime_url: "${url}", access_key_id: ${KEYS.id}, secret_access_key: "\${env:AWS}"`,
  ],
  "aws, InvokeModel": [
    fakeAws,
    CLAUDE,
    "aws",
    (url: string) =>
      `region: ${REGION}, runtime_url: "${url}", access_key_id: ${KEYS.id}, secret_access_key: "\${env:AWS}"`,
  ],
  vertex: [
    fakeGoogle,
    "gemini-3-pro-preview",
    "vertex",
    (url: string) =>
      `project: my-project, base_url: "${url}", token_url: "${url}/token", service_account: "\${env:GOOGLE}"`,
  ],
  "azure-foundry": [
    fakeAzure,
    "my-gpt",
    "azure-foundry",
    (url: string) => `base_url: "${url}", api_key: "\${env:AZURE}"`,
  ],
} as const;

describe.each(Object.entries(CLOUDS))("%s", (_name, [make, model, name, reached]) => {
  let fake: Fake;
  const env = { AWS: KEYS.secret, GOOGLE: ACCOUNT, AZURE: KEY };
  beforeAll(async () => {
    fake = await make();
  });
  afterAll(() => fake[Symbol.asyncDispose]());
  beforeEach(() => {
    fake.up.reset();
    fake.bend = undefined;
    fake.says = say("One two three four five six seven eight").usage({ input: 2, output: 9 });
  });

  const started = (dir?: string) =>
    startDaemon({
      env,
      ...(dir !== undefined && { dir }),
      yaml: `frontends: [chat-completions]
middleware: [auth, limits]
retries: { per_target: 1, total: 1 }
providers:
  cloud:
    use: "${plugin(name)}"
    with: { ${reached(fake.url)} }
    models: { "${model}": { ${PRICE} } }
`,
    });
  const ask = async (at: Daemon, key: string, stream: boolean): Promise<string> => {
    try {
      const answer = await fetch(`${at.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({
          model: `cloud/${model}`,
          max_tokens: 20,
          stream,
          messages: [{ role: "user", content: "Count." }],
        }),
      });
      return `${answer.status} ${await answer.text()}`;
    } catch {
      return "cut";
    }
  };
  const rows = async (at: Daemon): Promise<LedgerEntry[]> => {
    const { items } = (await at.ask("ledger.entries", { limit: 500 })) as unknown as {
      items: LedgerEntry[];
    };
    return items;
  };
  const settles = async (at: Daemon) => (await rows(at)).filter(({ kind }) => kind === "settle");
  const sum = (all: readonly LedgerEntry[]): bigint =>
    all.reduce((total, { costNano }) => total + BigInt(costNano ?? 0), 0n);

  it("a response that is truncated anywhere is billed for what the client received, and marked exact only if it is", async () => {
    await using at = await started();
    onTestFinished(() => rmSync(at.dir, { recursive: true, force: true }));
    const told: number[] = [];
    for (const after of ["headers", 1, 60, 200, 500, 1_500, { pieces: 2 }] as const) {
      fake.bend = (answer) => ({ ...answer, truncation: { after, how: "reset" } });
      const text = await ask(at, at.key, true);
      told.push(text.match(/one|two|three|four|five|six|seven|eight/gi)?.length ?? 0);
      await until(async () => (await settles(at)).length === told.length);
    }
    const each = charged(fake.up.bills.slice(0, 1));
    const all = await settles(at);
    expect(fake.up.bills).toHaveLength(all.length);
    for (const [n, { state, costNano }] of all.entries())
      if (state === "exact") expect(BigInt(costNano ?? 0)).toBe(each);
      else {
        expect(state).toBe("estimated");
        expect(BigInt(costNano ?? 0)).toBeGreaterThanOrEqual(
          charged([{ usage: { input: 2, output: told[n]! } }]),
        );
      }
    expect(all.some(({ state }) => state === "estimated")).toBe(true);
  });

  it("concurrent requests do not exceed a budget, and the rows equal the charges", async () => {
    await using at = await started();
    onTestFinished(() => rmSync(at.dir, { recursive: true, force: true }));
    const limits = ["usd=0.002/total"];
    const { secret } = (await at.ask("keys.create", { name: "poor", limits })) as {
      secret: string;
    };
    const got = await Promise.all(
      Array.from({ length: 24 }, (_, n) => ask(at, secret, n % 2 === 0)),
    );
    const statuses = new Set(got.map((each) => each.slice(0, 3)));
    expect([...statuses].sort()).toEqual(["200", "429"]);
    await until(async () => (await settles(at)).length === fake.up.bills.length);
    expect(sum(await settles(at))).toBe(charged(fake.up.bills));
    expect(charged(fake.up.bills)).toBeLessThanOrEqual(2_000_000n);
  });

  it("after a kill, open calls are recovered, and the sum is at least the charges", async () => {
    const first = await started();
    onTestFinished(() => rmSync(first.dir, { recursive: true, force: true }));
    expect(await ask(first, first.key, false)).toMatch(/^200 /);
    // Split, because one write has no gap.
    fake.bend = (answer) => ({ ...answer, chunks: 40, chunkDelayMs: 60_000 });
    const open = Promise.all([ask(first, first.key, true), ask(first, first.key, true)]);
    await until(() => fake.up.bills.length === 3);
    first.kill("SIGKILL");
    await Promise.all([first.exit, open]);
    fake.bend = undefined;
    await using next = await started(first.dir);
    expect(await ask(next, next.key, true)).toMatch(/^200 /);
    await until(async () => (await settles(next)).length === 4);
    const all = await settles(next);
    expect(all.map(({ state }) => state).sort()).toEqual([
      "estimated",
      "estimated",
      "exact",
      "exact",
    ]);
    expect(sum(all)).toBeGreaterThanOrEqual(charged(fake.up.bills));
    expect(await next.ask("ledger.verify")).toMatchObject({ problems: [] });
  });
});
