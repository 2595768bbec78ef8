// Commands that write a consequence of what they read: nothing changes in between.
import { expect, it } from "vitest";
import { CommandAudit } from "../../../src/admin/dispatch/command-audit.ts";
import { CommandDispatcher } from "../../../src/admin/dispatch/command-dispatcher.ts";
import { SHELL_PRINCIPAL } from "../../../src/runtime/access/principal.ts";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";
import { turnEventLoop } from "../../kit/wait.ts";

/** A gate in front of slow commands, and the number of concurrent ones. */
function slowGate() {
  let [now, most] = [0, 0];
  const run = async () => {
    most = Math.max(most, ++now);
    await turnEventLoop(2);
    now--;
    return {};
  };
  const gate = new CommandDispatcher({
    commands: Object.fromEntries(Object.keys(COMMAND_SPECS).map((name) => [name, run])),
    pluginCommands: { find: () => undefined, all: () => [] },
    scopes: { accountPath: (account) => [account], listKeys: async () => [] },
    audit: new CommandAudit({
      auditLog: undefined,
      mask: { maskText: (text) => text },
      now: () => 0,
      log: { error() {} },
    }),
  });
  return { gate, most: () => most };
}

const INPUTS = [
  ["keys.create", {}],
  ["keys.update", { id: "k" }],
  ["keys.revoke", { id: "k" }],
  ["accounts.create", { id: "a" }],
  ["accounts.close", { id: "a" }],
] as const;

it("run one after another, also two different ones", async () => {
  const { gate, most } = slowGate();
  const all = [...INPUTS, ...INPUTS].map(([name, input]) =>
    gate.dispatch(name, input, SHELL_PRINCIPAL),
  );
  await Promise.all(all);
  expect(most()).toBe(1);
});

it("delay no other command", async () => {
  const { gate, most } = slowGate();
  await Promise.all([
    gate.dispatch("keys.create", {}, SHELL_PRINCIPAL),
    gate.dispatch("keys.list", {}, SHELL_PRINCIPAL),
    gate.dispatch("status", {}, SHELL_PRINCIPAL),
  ]);
  expect(most()).toBe(3);
});

it("are all commands that compare with a version before they change it", () => {
  for (const [name, facts] of Object.entries(COMMAND_SPECS))
    if ("changedRecord" in facts && "readCommand" in facts.changedRecord)
      expect("isSerialized" in facts && facts.isSerialized, name).toBe(true);
});
