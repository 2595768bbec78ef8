// The same plugin in the gateway's other processes, and what they ask each other. With one process there are none.
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";

type PeerHandler = (question: never) => unknown;

export interface PluginPeers {
  /** From now on this one answers for its id, until its scope ends or a newer one takes over. */
  register(scope: LifetimeScope, id: string, answer: PeerHandler): void;
  /** What another process wants to know. */
  handle(id: string, question: unknown): unknown;
  /** `near`: of this gateway's processes alone, and of no other gateway on its store. */
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
