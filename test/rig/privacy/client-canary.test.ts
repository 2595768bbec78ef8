import { expect, it } from "vitest";
import { clientCanary } from "./client-canary.ts";

it("a client's credential is in no output, no memory, and no request to another server", async () => {
  const { wrong, counts } = await clientCanary({ seed: 7, plant: "" });
  expect(wrong).toEqual([]);
  expect(counts["calls"]).toBeGreaterThan(80);
  expect(counts["sinks"]).toBeGreaterThan(Number(counts["requests"]));
  // The heap, the crash report, and the isolated plugin.
  expect(counts["memory"]).toBe(process.platform === "linux" ? 3 : 2);
}, 400_000);

it("a middleware that keeps the credential is found", async () => {
  const { wrong } = await clientCanary({ seed: 7, plant: "memory" });
  expect(wrong).toContain("heap snapshot");
}, 400_000);
