// How commands reach what the store keeps: through the running gateway, or on the store itself while none runs.
import { wallClock } from "../lib/wall-clock.ts";
import type { GatewayConfig } from "../config/types.ts";
import { aroundOf, namesAround } from "../gateway/around.ts";
import { askControl, plain } from "../gateway/control/asking.ts";
import { treeOf } from "../gateway/control/account-tree.ts";
import { Auditing } from "../gateway/control/auditing.ts";
import { CommandGate } from "../gateway/control/gate.ts";
import { ON_FILES } from "../gateway/control/giver.ts";
import type { ControlCommandsOf } from "../gateway/control/socket.ts";
import { adminCommands, auditCommands } from "../gateway/control/admin-commands.ts";
import { keysIn } from "../gateway/control/world.ts";
import { keepingCommands } from "../gateway/control/keeping-commands.ts";
import { accountCommands } from "../gateway/control/account-commands.ts";
import { keyCommands } from "../gateway/control/key-commands.ts";
import { readsOf, type Shelf } from "../gateway/control/shelf.ts";
import { KnownAccounts } from "../gateway/services/accounts.ts";
import { ledgerCommands } from "../gateway/control/ledger-commands.ts";
import { foundCommand } from "../gateway/control/request-commands.ts";
import { openStore } from "../gateway/rehearse.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { askLive } from "./asking.ts";
import type { CliInput } from "./command.ts";
import { configFile, load, nameOf, quietLog, stateDirOf, version } from "./loading.ts";

export interface StoreDoor extends AsyncDisposable {
  /** The same words on both ways; amounts come as decimal strings. */
  ask(command: string, input: JsonObject): Promise<Json>;
  /** Whether a gateway runs, and new rows may come. */
  readonly live: boolean;
}

export function refuseMemory({ store }: Pick<GatewayConfig, "store">): void {
  if (store.use === "memory")
    fail(
      "conflict",
      "The memory store is in the running gateway alone, and none runs. Start it first.",
    );
}

export async function storeDoor(given: CliInput): Promise<StoreDoor> {
  if (await askLive(given, "status")) {
    const folder = await stateDirOf(given);
    return {
      ask: (command, input) => askControl(folder, command, input),
      live: true,
      async [Symbol.asyncDispose]() {},
    };
  }
  const file = configFile(given);
  const loaded = await load(file);
  const config =
    loaded.config ?? fail("invalid", `${nameOf(file)} has errors, see tollgate check.`);
  refuseMemory(config);
  const log = quietLog();
  const opened = await openStore({ loaded, config, ...log });
  const { store } = opened;
  const accounts = new KnownAccounts();
  await accounts.read(store);
  const around = () => aroundOf(config, loaded, []);
  const at = () => ({ at: wallClock() });
  const shelf: Shelf = {
    ...readsOf(store, wallClock),
    write: async (key) => void (await store.apply([{ do: "key", ...at(), key }])),
    writeAccount: async (account) =>
      void (await store.apply([{ do: "account", ...at(), account }])),
    writeOpening: async (opening) => void (await store.apply(opening)),
  };
  const commands: ControlCommandsOf = {
    ...ledgerCommands(
      store,
      (command) => store.apply([command]),
      () => namesAround(config, accounts, []),
    ),
    ...keepingCommands(
      { store, use: config.store.use, stateDir: config.stateDir, version },
      async () => {},
    ),
    ...foundCommand({ store }),
    ...adminCommands({
      list: keysIn(store),
      write: shelf.write,
      file: () => config.admin,
      tree: () => treeOf(shelf, around().accounts),
    }),
    ...auditCommands(store.audit),
    ...keyCommands(shelf, around),
    ...accountCommands(shelf, around),
  };
  const gate = new CommandGate({
    commands,
    own: { find: () => undefined, all: () => [] },
    world: { path: (account) => [account], keys: keysIn(store) },
    auditing: new Auditing({ log: store.audit, now: wallClock, mask: log.mask, told: log.log }),
  });
  return {
    ask: async (command, input) =>
      JSON.parse(
        JSON.stringify((await gate.give(command, input, ON_FILES)) ?? null, plain),
      ) as Json,
    live: false,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
