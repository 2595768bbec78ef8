// Runs a gateway whose ledger is in this store.
import { startGateway } from "tollgate/testing";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

test("a call is in the ledger when its client has the response", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    config: { store: "acme", providers: { demo: { use: "demo" } } },
  });
  expect((await at.ask("demo/echo", "Hello")).text).toBe("Hello");
  const kept = readFileSync(`${at.stateDir}/store/ledger.jsonl`, "utf8");
  expect(kept).toContain('"do":"settle"');
});
