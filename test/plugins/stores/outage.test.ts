// What a gateway decides while its database is away, and in which order it sends that afterwards.
import { expect, it } from "vitest";
import { Outage } from "../../../plugins/stores/postgres/apart.ts";
import { Tape } from "../../../plugins/stores/postgres/tape.ts";
import { reserve, settle } from "../../../src/testing/store.ts";
import { MemoryDisk } from "../../rig/sim/disk.ts";

it("keeps a call that ends while calls of unknown outcome are taken back", async () => {
  const tape = new Tape("/state", "one", () => {}, new MemoryDisk());
  const outage = new Outage(undefined, undefined, () => tape);
  outage.begin([reserve("in doubt")]);
  const doubtful = outage.first!;
  expect(doubtful).toMatchObject([{ do: "settle", attempt: "in doubt", state: "void" }]);
  const ended = settle("ended");
  await outage.decide([ended], (at) => at);
  outage.told(doubtful);
  expect(outage.first).toEqual([ended]);
  outage.told(outage.first!);
  expect(outage.first).toBeUndefined();
});
