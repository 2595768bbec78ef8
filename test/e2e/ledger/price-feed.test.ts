// The price feed of a running gateway: a signed document renews prices without a restart, and
// nothing that happened before it changes.
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { formatPublicKey, signDocument } from "../../../src/catalog/prices/price-document.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { runTollgate } from "../../kit/process/command-line.ts";

const PRIVATE = generateKeyPairSync("ed25519").privateKey.export({
  type: "pkcs8",
  format: "pem",
}) as string;

const yaml = (url: string, every = "24h") => `
frontends: [chat-completions]
middleware: [auth, limits]
prices: { from: ./prices.txt, every: ${every}, key: "${formatPublicKey(PRIVATE)}" }
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: "k" }
`;

let up: TestUpstream;
let at: InProcessGateway;
/** Called when the provider receives a request, before it responds. */
let meanwhile: () => Promise<unknown> = async () => {};
beforeAll(async () => {
  const script = scriptedModel(async () => {
    await meanwhile();
    return say("Hello").usage({ input: 1_000_000, output: 0 });
  });
  up = await startUpstream(script);
  at = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});

const publish = async (version: number, usd: string | undefined, changed = "") => {
  const text = JSON.stringify({
    version,
    issued: new Date().toISOString(),
    providers: {
      "openai-compatible": [
        {
          model: "gpt-x",
          operation: "chat",
          retires: "2031-01-01",
          prices:
            usd === undefined
              ? []
              : [
                  {
                    price: {
                      lines: [
                        { unit: "input", usd, per: 1_000_000 },
                        { unit: "output", usd: "1", per: 1_000_000 },
                      ],
                    },
                  },
                ],
        },
      ],
    },
  });
  await writeFile(
    join(at.dir, "prices.txt"),
    `${signDocument(text, [PRIVATE]).toString()}${changed}`,
  );
  return runTollgate(at, ["models", "refresh"]);
};

async function ask(): Promise<void> {
  const answer = await fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
    body: JSON.stringify({ model: "up/gpt-x", messages: [{ role: "user", content: "hi" }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

/** The cost of each call, in the order of the ledger. */
async function costs(): Promise<readonly (string | null)[]> {
  const { items } = (await at.ask("ledger.entries", { limit: 100 })) as unknown as {
    readonly items: readonly { readonly kind: string; readonly costNano: bigint | null }[];
  };
  return items
    .filter(({ kind }) => kind === "settle")
    .map(({ costNano }) => (costNano === null ? null : String(Number(costNano) / 1e9)));
}

it("prices new calls by the newest accepted document, and never the calls before it", async () => {
  // The first call is open while the price arrives.
  meanwhile = async () => {
    meanwhile = async () => {};
    await publish(1, "2");
  };
  await ask();
  await ask();
  expect(await costs()).toEqual([null, "2"]);

  const explained = await runTollgate(at, ["models", "explain", "up/gpt-x"]);
  expect(explained.out).toMatch(/price +price feed, \d{4}-/);
  expect(explained.out).toContain("2031-01-01");

  for (const broken of [
    () => publish(2, "3", " "),
    () => publish(1, "3"),
    () => publish(2, "-3"),
    () => publish(2, "60000"),
  ]) {
    await broken();
    await ask();
  }
  expect(new Set((await costs()).slice(1))).toEqual(new Set(["2"]));
  const status = await runTollgate(at, ["status"]);
  expect(status.out).toMatch(/prices +version 1, issued .*; The price document was rejected/);
});

it("holds a large change until the operator accepts it, and shows what the last month would have cost", async () => {
  await publish(3, "20");
  await ask();
  const diff = await runTollgate(at, ["models", "diff"]);
  expect(diff.code).toBe(1);
  expect(diff.out).toMatch(
    /openai-compatible\/gpt-x +held .*input 0\.000002 → 0\.00002 \(900%\) .*\$\d+ becomes \$\d+/,
  );
  const before = await costs();
  expect(before.at(-1)).toBe("2");
  const accepted = await runTollgate(at, ["models", "accept", "3"]);
  expect(accepted.out).toBe("openai-compatible/gpt-x accepted\n");
  await ask();
  expect(await costs()).toEqual([...before, "20"]);
  expect((await runTollgate(at, ["models", "accept", "3"])).err).toContain(
    "No such price waits for approval",
  );
});

it("keeps accepted prices over a reload, and ends with the setting", async () => {
  await at.write(yaml(up.url, "12h"));
  await runTollgate(at, ["reload"]);
  await ask();
  expect((await costs()).at(-1)).toBe("20");
  await at.write(yaml(up.url).replace(/prices: .*\n/, ""));
  await runTollgate(at, ["reload"]);
  await ask();
  expect((await costs()).at(-1)).toBeNull();
  const diff = await runTollgate(at, ["models", "diff"]);
  expect(diff.err).toContain("gateway.yaml sets no price feed");
});
