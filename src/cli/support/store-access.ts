// Gives commands access to the store: through the running gateway, or directly if no gateway is
// running.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { createGrantTargets, knownLedgerNames } from "../../admin/access/grants.ts";
import { callControl, jsonReplacer } from "../../admin/socket/control-client.ts";
import { readAccountTree } from "../../admin/access/account-tree.ts";
import { CommandAudit } from "../../admin/dispatch/command-audit.ts";
import { CommandDispatcher } from "../../admin/dispatch/command-dispatcher.ts";
import { OFFLINE_PRINCIPAL } from "../../runtime/access/principal.ts";
import type { CommandHandlerMap } from "../../admin/socket/control-socket.ts";
import { createAdminCommands, createAuditCommands } from "../../admin/commands/admin-commands.ts";
import { listAllKeys } from "../../runtime/store-keys.ts";
import { createMaintenanceCommands } from "../../admin/commands/maintenance-commands.ts";
import { accountCommands } from "../../admin/commands/account-commands.ts";
import { createKeyCommands } from "../../admin/commands/key-commands.ts";
import { createRepositoryReads, type KeyRepository } from "../../admin/access/key-repository.ts";
import { AccountCache } from "../../runtime/services/account-cache.ts";
import { createLedgerCommands } from "../../admin/commands/ledger-commands.ts";
import { createShowCommand } from "../../admin/commands/request-commands.ts";
import { openStoreOffline } from "../../server/dry-run.ts";
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { askRunningGateway } from "./gateway-or-file.ts";
import type { CliInput } from "./command.ts";
import {
  configFile,
  requireGatewayConfig,
  quietLog,
  findStateDir,
  version,
} from "./load-config.ts";

export interface StoreAccess extends AsyncDisposable {
  /**
   * Runs a store command. Its input and output are the same in both cases, with amounts as decimal
   * strings.
   */
  run(command: string, input: JsonObject): Promise<Json>;
  /** Whether a gateway is running, so that new rows may appear. */
  readonly isLive: boolean;
}

export function rejectVolatileStore({ store }: Pick<GatewayConfig, "store">): void {
  if (store.definition.isVolatile)
    fail(
      "conflict",
      `The store ${store.use} exists only in a running gateway, and no gateway is running. ` +
        "Start it first.",
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
  const { loaded, config } = await requireGatewayConfig(file);
  rejectVolatileStore(config);
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
