// A short form of `npm run rig sockets`. The nightly run plays more worlds and plants defects.
import { expect, it } from "vitest";
import { BESIDE_OTHERS } from "../rig.ts";
import { sockets } from "./sockets.ts";

it("every response that a client saw end has one row with its counts, wherever sockets are cut", async () => {
  const { wrong, counts } = await sockets(
    {
      worlds: 1,
      lives: 1,
      sessions: 24,
      seed: 23,
      only: { ending: "kill" },
      patience: BESIDE_OTHERS,
    },
    () => {},
  );
  expect(wrong).toEqual([]);
  // A world without responses or cuts would pass too.
  expect(counts["responses"]).toBeGreaterThan(5);
  expect(counts["estimated"]).toBeGreaterThan(0);
  expect(counts["recovered"]).toBeGreaterThan(0);
}, 120_000);
