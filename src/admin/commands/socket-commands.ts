// Commands about open WebSockets. They read and close the connections of every process.
import { fail } from "../../model/error.ts";
import type { Store } from "../../plugin/store/store.ts";
import { KeyNames } from "../../runtime/requests/key-names.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import {
  readAllLiveSockets,
  type LiveSocket,
  type LiveSocketSource,
} from "../../runtime/sockets/live-sockets.ts";
import type { OpenSockets } from "../../runtime/sockets/open-sockets.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

/** Open connections. */
export interface LiveSockets {
  readonly items: readonly (LiveSocket & { readonly keyName: string | undefined })[];
  /** Number of open connections. */
  readonly total: number;
}

interface SocketCommandsOptions {
  readonly store: Pick<Store, "listKeys">;
  /** Connections of this process. */
  readonly own: () => Pick<OpenSockets, "listOldest" | "closeForAdmin">;
  /** The other processes. */
  readonly workerPool: () =>
    | { statsSources(): readonly LiveSocketSource[]; closeSocket(id: string): Promise<boolean> }
    | undefined;
}

export function createSocketCommands({ store, own, workerPool }: SocketCommandsOptions) {
  const names = new KeyNames(store);
  const list = async (account: string | undefined): Promise<readonly LiveSocket[]> => {
    const all = await readAllLiveSockets(own().listOldest(), workerPool()?.statsSources() ?? []);
    return all.filter((each) => account === undefined || isWithinAccount(each.account, account));
  };
  return withInputChecks({
    "sockets.list": async ({ account, limit = 100 }): Promise<LiveSockets> => {
      const all = await list(account);
      const shown = all.toSorted((a, b) => a.openedAt - b.openedAt).slice(0, limit);
      const called = await names.readAll();
      return {
        items: shown.map((each) => ({ ...each, keyName: called.get(each.key) })),
        total: all.length,
      };
    },
    "sockets.close": async ({ id, account }): Promise<{ readonly closed: string }> => {
      // A connection of another account is treated as nonexistent.
      const isVisible = account === undefined || (await list(account)).some((one) => one.id === id);
      const isClosed =
        isVisible && (own().closeForAdmin(id) || (await workerPool()?.closeSocket(id)) === true);
      if (isClosed) return { closed: id };
      return fail("not_found", `Connection "${id}" is not open.`, { code: "no_such_socket" });
    },
  });
}
