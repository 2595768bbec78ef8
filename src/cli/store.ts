// How commands reach what the store keeps: through the running gateway, or on the store itself while none runs.
import { wallClock } from "../lib/wall-clock.ts";
import type { GatewayConfig } from "../config/types.ts";
import { createGrantTargets, knownLedgerNames } from "../gateway/around.ts";
import { callControl, jsonReplacer } from "../gateway/control/asking.ts";
import { readAccountTree } from "../gateway/control/account-tree.ts";
import { CommandAudit } from "../gateway/control/auditing.ts";
import { CommandDispatcher } from "../gateway/control/gate.ts";
import { OFFLINE_PRINCIPAL } from "../gateway/control/giver.ts";
import type { CommandHandlerMap } from "../gateway/control/socket.ts";
import { createAdminCommands, createAuditCommands } from "../gateway/control/admin-commands.ts";
import { listAllKeys } from "../gateway/control/world.ts";
import { createMaintenanceCommands } from "../gateway/control/keeping-commands.ts";
import { accountCommands } from "../gateway/control/account-commands.ts";
import { createKeyCommands } from "../gateway/control/key-commands.ts";
import { createRepositoryReads, type KeyRepository } from "../gateway/control/shelf.ts";
import { AccountCache } from "../gateway/services/accounts.ts";
import { createLedgerCommands } from "../gateway/control/ledger-commands.ts";
import { createShowCommand } from "../gateway/control/request-commands.ts";
import { openStoreOffline } from "../gateway/rehearse.ts";
import { fail } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { askRunningGateway } from "./asking.ts";
import type { CliInput } from "./command.ts";
import {
  configFile,
  loadGatewayConfig,
  configName,
  quietLog,
  findStateDir,
  version,
} from "./loading.ts";

export interface StoreAccess extends AsyncDisposable {
  /** The same words on both ways; amounts come as decimal strings. */
  run(command: string, input: JsonObject): Promise<Json>;
  /** Whether a gateway runs, and new rows may come. */
  readonly isLive: boolean;
}

export function rejectMemoryStore({ store }: Pick<GatewayConfig, "store">): void {
  if (store.use === "memory")
    fail(
      "conflict",
      "The memory store is in the running gateway alone, and none runs. Start it first.",
    );
}

export async function openStoreAccess(given: CliInput): Promise<StoreAccess> {
  if (await askRunningGateway(given, "status")) {
    const folder = await findStateDir(given);
    return {
      run: (command, input) => callControl(folder, command, input),
      isLive: true,
      async [Symbol.asyncDispose]() {},
    };
  }
  const file = configFile(given);
  const loaded = await loadGatewayConfig(file);
  const config =
    loaded.config ?? fail("invalid", `${configName(file)} has errors, see tollgate check.`);
  rejectMemoryStore(config);
  const log = quietLog();
  const opened = await openStoreOffline({ loaded, config, ...log });
  const { store } = opened;
  const accounts = new AccountCache();
  await accounts.load(store);
  const around = () => createGrantTargets(config, loaded, []);
  const at = () => ({ at: wallClock() });
  const shelf: KeyRepository = {
    ...createRepositoryReads(store, wallClock),
    writeKey: async (key) => void (await store.apply([{ do: "key", ...at(), key }])),
    writeAccount: async (account) =>
      void (await store.apply([{ do: "account", ...at(), account }])),
    writeOpening: async (opening) => void (await store.apply(opening)),
  };
  const commands: CommandHandlerMap = {
    ...createLedgerCommands(
      store,
      (command) => store.apply([command]),
      () => knownLedgerNames(config, accounts, []),
    ),
    ...createMaintenanceCommands(
      { store, use: config.store.use, stateDir: config.stateDir, version },
      async () => {},
    ),
    ...createShowCommand({ store }),
    ...createAdminCommands({
      list: listAllKeys(store),
      write: shelf.writeKey,
      fileConfig: () => config.admin,
      readTree: () => readAccountTree(shelf, around().fileAccounts),
    }),
    ...createAuditCommands(store.audit),
    ...createKeyCommands(shelf, around),
    ...accountCommands(shelf, around),
  };
  const gate = new CommandDispatcher({
    commands,
    pluginCommands: { find: () => undefined, all: () => [] },
    scopes: { accountPath: (account) => [account], listKeys: listAllKeys(store) },
    audit: new CommandAudit({
      auditLog: store.audit,
      now: wallClock,
      mask: log.mask,
      log: log.log,
    }),
  });
  return {
    run: async (command, input) =>
      JSON.parse(
        JSON.stringify(
          (await gate.dispatch(command, input, OFFLINE_PRINCIPAL)) ?? null,
          jsonReplacer,
        ),
      ) as Json,
    isLive: false,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
