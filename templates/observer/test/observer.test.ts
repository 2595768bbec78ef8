// Runs the observer in a gateway, and reads the counts with its command.
import { startGateway } from "tollgate/testing";
import { expect, test, vi } from "vitest";
import plugin from "../src/index.ts";

test("counts each request, including rejected requests", async () => {
  await using at = await startGateway({
    plugins: { acme: plugin },
    config: { observers: ["acme"], providers: { demo: { use: "demo" } } },
  });
  for (const model of ["demo/echo", "demo/echo", "nowhere/echo"]) await at.ask(model, "Hello");
  // Records arrive in batches, after the responses.
  await vi.waitFor(
    async () => expect(await at.runCommand("observers.acme", "counts")).toEqual({ 200: 2, 404: 1 }),
    20_000,
  );
});
