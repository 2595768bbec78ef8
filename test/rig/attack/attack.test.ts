import { expect, it } from "vitest";
import { attack } from "./attack.ts";

// The long form is `npm run rig attack`, which also checks how long the event loop is blocked.
// Here, other tests run on the machine.
it("no attack succeeds: clients, bodies, upstreams", async () => {
  const said: string[] = [];
  const verdict = await attack(
    { seed: 7, requests: 1_500, every: 50, only: "", long: false },
    (line) => said.push(line),
  );
  const wrong = verdict.wrong.filter((line) => !line.includes("held the loop"));
  expect(wrong, said.join("\n")).toEqual([]);
  expect(verdict.counts["attacks"]).toBeGreaterThan(15);
}, 420_000);
