// What a running gateway does for each command of the table.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Refresh } from "../../catalogue/refresh.ts";
import type { Changes } from "../changes.ts";
import { aroundOf, namesAround } from "../around.ts";
import { attentionCommand, type AttentionOf } from "./attention.ts";
import { adminCommands, auditCommands, sessionCommands } from "./admin-commands.ts";
import { answering } from "./input.ts";
import { auditingOf } from "./auditing.ts";
import { CommandGate } from "./gate.ts";
import { treeOf } from "./account-tree.ts";
import { Looks } from "./looks.ts";
import { keysIn, worldOf } from "./world.ts";
import type { ControlCommand } from "./socket.ts";
import type { CommandName } from "./table.ts";
import type { Services } from "../services/services.ts";
import { keepingCommands } from "./keeping-commands.ts";
import { accountCommands } from "./account-commands.ts";
import { identityOf, keyCommands } from "./key-commands.ts";
import { readsOf, type Shelf } from "./shelf.ts";
import { ledgerCommands } from "./ledger-commands.ts";
import { modelCommands, mounted } from "./model-commands.ts";
import { type Mounts, mountedCommands, pluginCommands } from "./plugin-commands.ts";
import { policyCommands } from "./policy-commands.ts";
import { configCommands } from "./config-commands.ts";
import { providerCommands } from "./provider-commands.ts";
import { allUnderWay } from "../requests/under-way.ts";
import type { LiveGeneration } from "../generation/slot.ts";
import type { GatewayOptions } from "../options.ts";
import { requestCommands } from "./request-commands.ts";
import type { GatewayConfig } from "../../config/types.ts";
import type { Gateway } from "../types.ts";
import type { WorkerPool } from "../workers/pool.ts";

interface CommandsOf {
  gateway: Gateway;
  services: Services;
  /** How all processes hear of keys and accounts. */
  changes: Changes;
  /** The other processes. */
  workers: () => Pick<WorkerPool, "tell" | "sources"> | undefined;
  refresh: Refresh;
  /** What it was started with. */
  options: Pick<GatewayOptions, "file" | "overrides" | "load" | "isBuiltin" | "version">;
  current: () => Pick<LiveGeneration, "built" | "config" | "loaded" | "at">;
}

/** All of them, behind the one gate. */
export const commandsOf = (of: CommandsOf): CommandGate => {
  const { gateway, services, changes, refresh, current } = of;
  const remembered = services.remembered!;
  const holders = services.holders!;
  const built = () => current().built;
  const listed = () =>
    built()
      .gen.catalogue.list()
      .map(({ id }) => id);
  const mounts = (): Mounts => ({ ...current(), ...services });
  const around = () => aroundOf(current().config, current().loaded, listed());
  const shelf = shelfOf(services, changes);
  const looks = new Looks(wallClock);
  const commands: Record<CommandName, ControlCommand> = {
    ...answering({
      status: async () => gateway.status(),
      fleet: () => gateway.fleet(),
      readings: async () => services.readings(),
      reload: async () => gateway.reload("command"),
      explain: async ({ model, frontend, key, privacy }) => {
        const identity = key === undefined ? undefined : await identityOf(shelf, key, wallClock());
        return gateway.explain(model, frontend, { identity, privacy });
      },
      /** Asks for lists of models now, every provider's or one's; answers when all have said something. */
      "models.refresh": async ({ provider }) => {
        await refresh.now(provider && mounted(built().providers, provider));
        return gateway.status();
      },
    }),
    ...attentionCommand(attending(of, shelf, () => treeOf(shelf, around().accounts))),
    ...modelCommands(built, () => current().config.models),
    ...policyCommands(built),
    ...pluginCommands(mounts),
    ...ledgerCommands(
      services.store,
      (command) => services.ledger.adjust(command),
      () => namesAround(current().config, services.accounts, listed()),
    ),
    ...keepingCommands(
      {
        store: services.store,
        use: current().config.store.use,
        stateDir: services.stateDir,
        version: of.options.version,
      },
      () => {
        remembered.ring.forgetWords();
        return Promise.all([changes.forget(), changes.accounts()]).then(() => {});
      },
    ),
    ...configCommands({ ...of.options, env: services.env, mask: services.mask, current }),
    ...providerCommands({ built, services, gateway, workers: of.workers }),
    ...requestCommands({
      store: services.store,
      live: {
        remembered,
        readings: services.readings,
        underWay: () => allUnderWay(services.underWay, of.workers()?.sources() ?? []),
      },
    }),
    ...adminCommands({
      list: keysIn(services.store),
      write: shelf.write,
      file: () => current().config.admin,
      tree: () => treeOf(shelf, around().accounts),
      sessions: () => holders.sessions,
    }),
    ...auditCommands(services.store.audit, looks),
    ...sessionCommands(holders.sessions, () => gateway.adminUrl),
    ...keyCommands(shelf, around),
    ...accountCommands(shelf, around),
  };
  return new CommandGate({
    commands,
    own: mountedCommands(mounts),
    world: worldOf(services.store, current),
    auditing: auditingOf(services),
    looks,
  });
};

/** What the list of what needs attention is made from. */
const attending = (
  { gateway, services, current }: CommandsOf,
  shelf: Shelf,
  tree: AttentionOf["tree"],
): AttentionOf => ({
  status: () => gateway.status(),
  readings: () => services.readings(),
  stats: services.remembered!.stats,
  built: () => current().built,
  names: () => aliases(current().config),
  shelf,
  tree,
});

const aliases = ({ models }: GatewayConfig): ReadonlyMap<string, readonly string[]> =>
  new Map([...models].map(([name, { candidates }]) => [name, candidates]));

/** Durable first, and then known in every process. */
const shelfOf = (
  { store, ledger, observing }: Pick<Services, "store" | "ledger" | "observing">,
  changes: Changes,
): Shelf => ({
  ...readsOf(store, wallClock),
  write: (record) => ledger.key(record).then(() => changes.forget()),
  writeAccount: (record) => ledger.account(record).then(() => changes.account(record)),
  writeOpening: ([reserve, settle]) => ledger.reserve(reserve).then(() => ledger.settle(settle)),
  changed: (what, id) => {
    const at = wallClock();
    if (what.type === "key") observing.told({ ...what, at, key: id });
    else observing.told({ ...what, at, account: id });
  },
});
