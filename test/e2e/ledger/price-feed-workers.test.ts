// The price feed with workers: a document that the primary process accepts prices the calls of every
// worker, and so does the operator's acceptance.
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { formatPublicKey, signDocument } from "../../../src/catalog/prices/price-document.ts";
import { runTollgate } from "../../kit/process/command-line.ts";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

const PRIVATE = generateKeyPairSync("ed25519").privateKey.export({
  type: "pkcs8",
  format: "pem",
}) as string;

let up: TestUpstream;
let at: Daemon;
beforeAll(async () => {
  up = await startUpstream(
    scriptedModel(() => say("Hello").usage({ input: 1_000_000, output: 0 })),
  );
  at = await startDaemon({
    yaml: `
workers: 2
frontends: [chat-completions]
middleware: [auth, limits]
prices: { from: ./prices.txt, key: "${formatPublicKey(PRIVATE)}" }
providers:
  up: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: "k" } }
`,
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

async function publish(version: number, usd: string): Promise<void> {
  const lines = [{ unit: "input", usd, per: 1_000_000 }];
  const text = JSON.stringify({
    version,
    issued: new Date().toISOString(),
    providers: {
      "openai-compatible": [{ model: "gpt-x", operation: "chat", prices: [{ price: { lines } }] }],
    },
  });
  await writeFile(join(at.dir, "prices.txt"), signDocument(text, [PRIVATE]));
  await runTollgate(at, ["models", "refresh"]);
}

/** Sends requests that either worker may get, and returns their costs in dollars. */
async function costs(): Promise<readonly (number | null)[]> {
  const { items: before } = await rows();
  await Promise.all(Array.from({ length: 12 }, () => askOnNewConnection(at, "up/gpt-x")));
  const { items } = await rows();
  return items
    .slice(before.length)
    .filter(({ kind }) => kind === "settle")
    .map(({ costNano }) => (costNano === null ? null : Number(costNano) / 1e9));
}
const rows = async () =>
  (await at.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    readonly items: readonly { readonly kind: string; readonly costNano: bigint | null }[];
  };
const all = (usd: number) => Array.from({ length: 12 }, () => usd);

it("prices the calls of all workers by the newest document, and holds large changes for all", async () => {
  await publish(1, "2");
  await until(async () => (await costs()).every((cost) => cost === 2));
  expect(await costs()).toEqual(all(2));
  await publish(2, "20");
  expect(await costs()).toEqual(all(2));
  expect((await runTollgate(at, ["models", "accept", "2"])).out).toContain("accepted");
  await until(async () => (await costs()).every((cost) => cost === 20));
  expect(await costs()).toEqual(all(20));
});
