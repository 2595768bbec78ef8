// A gateway whose lease expired while it was alive: before its next write the store is reopened,
// and the write is repeated.
import { expect, it } from "vitest";
import { LifetimeScope, SharedResources } from "../../../src/lib/lifetime-scope.ts";
import { createFault } from "../../../src/model/error.ts";
import { SETUP_RESULT_MEMBERS } from "../../../src/plugin/known-members.ts";
import type { AuditEntry } from "../../../src/plugin/store/audit.ts";
import type { Store } from "../../../src/plugin/store/store.ts";
import { createPluginPeers } from "../../../src/runtime/services/peer-gateways.ts";
import { openStore } from "../../../src/runtime/ledger/open-store.ts";

/** Fenced once, until it is reopened. */
function fencing() {
  const told: string[] = [];
  let live = true;
  const work = async (what: string): Promise<void> => {
    if (!live)
      throw createFault("conflict", "This gateway was fenced because its lease expired.", {
        code: "fenced",
      });
    told.push(what);
  };
  const store: Partial<Store> = {
    lease: { durationMs: 3_000, heartbeatMs: 1_000 },
    async open() {
      live = true;
      told.push("open");
      return { epoch: 1, recovered: 0 };
    },
    async apply() {
      await work("apply");
      return [];
    },
    audit: {
      begin: ({ id }) => work(`begin ${id}`),
      end: ({ id }) => work(`end ${id}`),
      list: async () => ({ items: [] }),
    },
  };
  return { store, told, bury: () => void (live = false) };
}

function openFrom(store: Partial<Store>): Promise<Store> {
  const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
  const definition = { setup: () => store, options: { type: "object", properties: {} } };
  return openStore(
    {
      store: { use: "./s.ts", definition, options: {} },
      file: "gateway.yaml",
      bounds: {},
    } as never,
    {
      log,
      env: {},
      stateDir: "/nowhere",
      shared: new SharedResources(),
      pluginPeers: createPluginPeers(),
    } as never,
    new LifetimeScope(),
    { version: "1", instance: "one" },
  );
}

it("a store of several gateways keeps all of its members", async () => {
  const names = Object.keys(SETUP_RESULT_MEMBERS.store) as (keyof Store)[];
  const members = names.map((name) => [name, async () => ({ epoch: 1, recovered: 0 })] as const);
  const opened = await openFrom(Object.fromEntries(members) as Partial<Store>);
  expect(names.filter((name) => opened[name] === undefined)).toEqual([]);
});

it.each(["apply", "begin", "end"] as const)(
  "%s is sent again by a store that was reopened",
  async (what) => {
    const { store, told, bury } = fencing();
    const opened = await openFrom(store);
    bury();
    const entry = { id: "a", at: 1 } as AuditEntry;
    if (what === "apply") await opened.apply([]);
    if (what === "begin") await opened.audit!.begin(entry);
    if (what === "end") await opened.audit!.end({ id: "a", at: 1 } as never);
    expect(told).toEqual(["open", "open", what === "apply" ? what : `${what} a`]);
  },
);
