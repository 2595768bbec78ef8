// The same plugin in the gateway's other processes, and what they ask each other. With one process there are none.
import type { Scope } from "../../lib/scope.ts";

type Answer = (question: never) => unknown;

export interface Peers {
  /** From now on this one answers for its id, until its scope ends or a newer one takes over. */
  answers(scope: Scope, id: string, answer: Answer): void;
  /** What another process wants to know. */
  asked(id: string, question: unknown): unknown;
  /** `near`: of this gateway's processes alone, and of no other gateway on its store. */
  ask(id: string, question: unknown, near?: boolean): Promise<unknown>;
}

export function createPeers(ask: Peers["ask"] = async () => undefined): Peers {
  const here = new Map<string, Answer>();
  return {
    ask,
    asked: (id, question) => here.get(id)?.(question as never),
    answers(scope, id, answer) {
      here.set(id, answer);
      scope.defer(() => here.get(id) === answer && here.delete(id));
    },
  };
}
