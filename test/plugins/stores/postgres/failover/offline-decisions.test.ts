// Decisions of a gateway during a database outage, and the order in which it sends them afterwards.
import { expect, it } from "vitest";
import { OfflineMode } from "../../../../../plugins/stores/postgres/offline/offline-mode.ts";
import { Spool } from "../../../../../plugins/stores/postgres/offline/spool.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import { MemoryDisk } from "../../../../rig/fleet/sim/disk.ts";

it("keeps a call that ends while calls with an unknown outcome are undone", async () => {
  const tape = new Spool("/state", "one", () => {}, new MemoryDisk());
  const outage = new OfflineMode(undefined, () => tape);
  outage.begin([reserveCommand("in doubt")]);
  const doubtful = outage.nextBatch!;
  expect(doubtful).toMatchObject([{ do: "settle", attempt: "in doubt", state: "void" }]);
  const ended = settleCommand("ended");
  await outage.decide([ended], (at) => at);
  outage.markReplayed(doubtful);
  expect(outage.nextBatch).toEqual([ended]);
  outage.markReplayed(outage.nextBatch!);
  expect(outage.nextBatch).toBeUndefined();
});
