// Commands that write what follows from what they read: nothing changes in between, whichever of them it would be.
import { expect, it } from "vitest";
import { Auditing } from "../../../src/gateway/control/auditing.ts";
import { CommandGate } from "../../../src/gateway/control/gate.ts";
import { SHELL } from "../../../src/gateway/control/giver.ts";
import { COMMANDS } from "../../../src/gateway/control/table.ts";
import { turns } from "../../kit/waits.ts";

/** A gate before commands that each take a while, and how many of them were at work at once. */
function slowGate() {
  let [now, most] = [0, 0];
  const run = async () => {
    most = Math.max(most, ++now);
    await turns(2);
    now--;
    return {};
  };
  const gate = new CommandGate({
    commands: Object.fromEntries(Object.keys(COMMANDS).map((name) => [name, run])),
    own: { find: () => undefined, all: () => [] },
    world: { path: (account) => [account], keys: async () => [] },
    auditing: new Auditing({
      log: undefined,
      mask: { text: (text) => text },
      now: () => 0,
      told: { error() {} },
    }),
  });
  return { gate, most: () => most };
}

const INPUTS = [
  ["keys.create", {}],
  ["keys.update", { id: "k" }],
  ["keys.revoke", { id: "k" }],
  ["accounts.create", { id: "a" }],
  ["accounts.end", { id: "a" }],
] as const;

it("are done one after another, two of different kinds too", async () => {
  const { gate, most } = slowGate();
  const all = [...INPUTS, ...INPUTS].map(([name, input]) => gate.give(name, input, SHELL));
  await Promise.all(all);
  expect(most()).toBe(1);
});

it("keep no other command waiting", async () => {
  const { gate, most } = slowGate();
  await Promise.all([
    gate.give("keys.create", {}, SHELL),
    gate.give("keys.list", {}, SHELL),
    gate.give("status", {}, SHELL),
  ]);
  expect(most()).toBe(3);
});

it("are all that are compared with what they read before they change it", () => {
  for (const [name, facts] of Object.entries(COMMANDS))
    if ("changes" in facts && "read" in facts.changes)
      expect("inTurn" in facts && facts.inTurn, name).toBe(true);
});
