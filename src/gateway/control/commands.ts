// What a running gateway does for each command of the table.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Refresh } from "../../catalogue/refresh.ts";
import { aroundOf, namesAround } from "../around.ts";
import { answering } from "./input.ts";
import type { ControlCommand } from "./socket.ts";
import type { CommandName } from "./table.ts";
import type { Services } from "../services/services.ts";
import { keepingCommands } from "./keeping-commands.ts";
import { keyCommands } from "./key-commands.ts";
import { ledgerCommands } from "./ledger-commands.ts";
import { modelCommands, mounted } from "./model-commands.ts";
import { type Mounts, pluginCommand, pluginCommands } from "./plugin-commands.ts";
import { policyCommands } from "./policy-commands.ts";
import { requestCommands } from "./request-commands.ts";
import type { Gateway } from "../types.ts";

export const commandsOf = (of: {
  gateway: Gateway;
  services: Pick<
    Services,
    "store" | "ledger" | "mask" | "observing" | "remembered" | "readings" | "env" | "stateDir"
  >;
  /** Of Tollgate. */
  version: string;
  /** Resolves when no process remembers anything of a key any more. */
  forget: () => Promise<void>;
  refresh: Refresh;
  current: () => Pick<Mounts, "built" | "config">;
}) => {
  const { gateway, services, forget, refresh, current } = of;
  const remembered = services.remembered!;
  const built = () => current().built;
  const listed = () =>
    built()
      .gen.catalogue.list()
      .map(({ id }) => id);
  const mounts = (): Mounts => ({ ...current(), ...services });
  const commands: Record<CommandName, ControlCommand> = {
    ...answering({
      status: async () => gateway.status(),
      readings: async () => services.readings(),
      reload: async () => gateway.reload("command"),
      explain: async ({ model, frontend }) => gateway.explain(model, frontend),
      /** Asks for lists of models now, every provider's or one's; answers when all have said something. */
      "models.refresh": async ({ provider }) => {
        await refresh.now(provider && mounted(built().providers, provider));
        return gateway.status();
      },
    }),
    ...modelCommands(built),
    ...policyCommands(built),
    ...pluginCommands(mounts),
    ...ledgerCommands(
      services.store,
      (command) => services.ledger.adjust(command),
      () => namesAround(current().config, listed()),
    ),
    ...keepingCommands(
      {
        store: services.store,
        use: current().config.store.use,
        stateDir: services.stateDir,
        version: of.version,
      },
      () => {
        remembered.ring.forgetWords();
        return forget();
      },
    ),
    ...requestCommands({
      store: services.store,
      live: { remembered, readings: services.readings },
    }),
    ...keyCommands(
      {
        list: (page) => services.store.keys(page),
        write: (record) => services.ledger.key(record).then(forget),
        changed: (change, key) =>
          services.observing.told({ type: "key", at: wallClock(), change, key }),
      },
      wallClock,
      () => aroundOf(current().config, listed()),
    ),
  };
  return { commands, own: (name: string) => pluginCommand(mounts, name) };
};
