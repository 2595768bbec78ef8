// How commands reach what the store keeps: through the running gateway, or on the store itself while none runs.
import { wallClock } from "../lib/wall-clock.ts";
import type { GatewayConfig } from "../config/types.ts";
import { aroundOf, namesAround } from "../gateway/around.ts";
import { askControl } from "../gateway/control/asking.ts";
import type { ControlCommandsOf } from "../gateway/control/socket.ts";
import { keepingCommands } from "../gateway/control/keeping-commands.ts";
import { keyCommands } from "../gateway/control/key-commands.ts";
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
  const opened = await openStore({ loaded, config, ...quietLog() });
  const { store } = opened;
  const commands: ControlCommandsOf = {
    ...ledgerCommands(
      store,
      (command) => store.apply([command]),
      () => namesAround(config, []),
    ),
    ...keepingCommands(
      { store, use: config.store.use, stateDir: config.stateDir, version },
      async () => {},
    ),
    ...foundCommand({ store }),
    ...keyCommands(
      {
        list: (page) => store.keys(page),
        write: async (key) => void (await store.apply([{ do: "key", at: wallClock(), key }])),
      },
      wallClock,
      () => aroundOf(config, []),
    ),
  };
  return {
    ask: async (command, input) =>
      JSON.parse(
        JSON.stringify((await commands[command]!(input)) ?? null, (_, value: unknown) =>
          typeof value === "bigint" ? `${value}` : value,
        ),
      ) as Json,
    live: false,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
