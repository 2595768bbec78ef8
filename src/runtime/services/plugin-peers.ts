// Connects a plugin with its instances in the gateway's other processes. With one process there are
// none.
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";

type PeerHandler = (question: never) => unknown;

export interface PluginPeers {
  /** Registers the handler for a plugin ID, until its scope ends or a newer handler replaces it. */
  register(scope: LifetimeScope, id: string, answer: PeerHandler): void;
  /** Answers a query from another process. */
  handle(id: string, question: unknown): unknown;
  /**
   * Queries other instances. `near`: only processes of this gateway, and no other gateway on the
   * store.
   */
  ask(id: string, question: unknown, near?: boolean): Promise<unknown>;
}

export function createPluginPeers(ask: PluginPeers["ask"] = async () => undefined): PluginPeers {
  const here = new Map<string, PeerHandler>();
  return {
    ask,
    handle: (id, question) => here.get(id)?.(question as never),
    register(scope, id, answer) {
      here.set(id, answer);
      scope.defer(() => here.get(id) === answer && here.delete(id));
    },
  };
}
