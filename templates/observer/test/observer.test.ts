// A whole gateway: what was asked is counted, and an operator can ask for the counts.
import { startGateway } from "tollgate/testing";
import { expect, test, vi } from "vitest";
import plugin from "../src/index.ts";

test("each request is counted, refused ones too", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    config: { observers: ["acme"], providers: { demo: { use: "demo" } } },
  });
  for (const model of ["demo/echo", "demo/echo", "nowhere/echo"]) await at.ask(model, "Hello");
  // Records come in batches, after the answers.
  await vi.waitFor(
    async () => expect(await at.runCommand("observers.acme", "counts")).toEqual({ 200: 2, 404: 1 }),
    20_000,
  );
});
