// Ledger commands for an operator: a key is given by its ID or its name, and a model is shown as
// clients write it.
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { getFault, type Store } from "tollgate/plugin";
import { createTestContext } from "../../../src/testing/context.ts";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import type { CommandHandler } from "../../../src/admin/socket/control-socket.ts";
import { createLedgerCommands } from "../../../src/admin/commands/ledger-commands.ts";
import memory from "../../../plugins/stores/memory.ts";

let store: Store;
let ask: (name: string, input: object) => Promise<any>;
beforeEach(async () => {
  const lent = createTestContext();
  onTestFinished(() => lent.end());
  store = await memory.setup({ keep: 1_000 }, lent.ctx);
  await store.open({ instance: "i" });
  const key = (id: string, name: string) =>
    ({ do: "key", at: 1, key: { id, name, digest: `d-${id}`, created: 1 } }) as const;
  const target = { provider: "demo", model: "echo", protocol: null, credential: "c" };
  await store.apply([
    key("k1", "laptop"),
    key("k2", "twin"),
    key("k3", "twin"),
    ...["k1", "k2", "elsewhere"].flatMap((of, i) => [
      reserveCommand(`a${i}`, { key: of, target }),
      settleCommand(`a${i}`),
    ]),
  ]);
  const commands: Readonly<Record<string, CommandHandler>> = createLedgerCommands(
    store,
    (command) => store.apply([command]),
  );
  ask = async (name, input) => commands[name]!(input as never);
});

describe.each([
  ["ledger.totals", (said: any) => said.total.calls],
  ["ledger.entries", (said: any) => said.items.length / 2],
])("%s", (name, calls) => {
  it.each(["k1", "laptop", "elsewhere", "k2"])("of the key %s includes its calls", async (key) => {
    expect(calls(await ask(name, { key }))).toBe(1);
  });
  it("of a name of two keys reports the ambiguity", async () => {
    const fault = await ask(name, { key: "twin" }).catch(getFault);
    expect(fault).toMatchObject({ kind: "invalid" });
    expect(fault.message).toContain("k2, k3");
  });
  it("of an unknown key is an error, not an empty result", async () => {
    expect(await ask(name, { key: "desktop" }).catch(getFault)).toMatchObject({
      kind: "not_found",
      code: "no_such_key",
    });
  });
});

it("estimates are counted, also if a store does not count them", async () => {
  await store.apply([
    reserveCommand("guess", { key: "k2" }),
    settleCommand("guess", { state: "estimated" }),
  ]);
  const { rows: counted, total } = await ask("ledger.totals", { by: ["key"] });
  const totals = store.sumEntries.bind(store);
  store.sumEntries = async (query) =>
    (await totals(query)).map(({ estimated: _, ...rest }) => ({ ...rest }));
  expect(await ask("ledger.totals", { by: ["key"] })).toMatchObject({ rows: counted, total });
  expect(total.estimated).toBe(1);
});

it("the total is the sum of the rows if each call is in one row, and is queried otherwise", async () => {
  const dimensions = ["key", "model", "label", "account"] as const;
  const wholes = await Promise.all(dimensions.map((by) => ask("ledger.totals", { by: [by] })));
  for (const { total } of wholes) expect(total).toEqual({ ...wholes[0].total, by: {} });
});

it("a model is shown with its provider", async () => {
  const { rows } = await ask("ledger.totals", { by: ["model"] });
  expect(rows.map((row: any) => row.by)).toEqual([{ model: "demo/echo" }]);
});

it("a correction is a separate, exact row with its reason; an invalid amount is rejected", async () => {
  const before = await ask("ledger.totals", { by: ["key"], key: "k1" });
  expect(
    await ask("ledger.adjust", { attempt: "a0", usd: "-0.000000300", reason: "refund" }),
  ).toEqual({ attempt: "a0", costNano: -300n });
  const { items } = await ask("ledger.entries", { attempt: "a0" });
  expect(items.at(-1)).toMatchObject({
    kind: "adjust",
    costNano: -300n,
    reason: "refund",
    actor: "operator",
  });
  const after = await ask("ledger.totals", { by: ["key"], key: "k1" });
  expect(after.total.costNano).toBe(before.total.costNano - 300n);
  for (const usd of ["1e3", "five", "0.0000000001", ""])
    expect(
      await ask("ledger.adjust", { attempt: "a0", usd, reason: "r" }).catch(getFault),
    ).toMatchObject({
      kind: "invalid",
    });
  for (const attempt of ["nothing"])
    expect(
      await ask("ledger.adjust", { attempt, usd: "1", reason: "r" }).catch(getFault),
    ).toMatchObject({
      code: "unknown_attempt",
    });
});
