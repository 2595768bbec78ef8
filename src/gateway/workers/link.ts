// Two processes that ask each other: a question is a message there, an answer is a message back. Everything is plain data,
// faults too. What was asked of a process that is gone is answered by an error.
import { fail, fault, faultOf, type Fault } from "../../model/error.ts";

/** What this side answers to, by name. */
export type Answers = Readonly<Record<string, (...args: never[]) => unknown>>;

export interface Link {
  ask<T>(name: string, ...args: readonly unknown[]): Promise<T>;
  /** Without an answer. In the order in which it is said, between questions too. */
  tell(name: string, ...args: readonly unknown[]): void;
}

/** A process as seen from here: a child, or, from a child, `process` itself. */
export interface Channel {
  readonly connected?: boolean;
  send?(message: object, handle: undefined, options: undefined, sent: () => void): boolean;
  on(event: "message", hear: (message: unknown) => void): unknown;
  once(event: "disconnect", over: () => void): unknown;
}

type Message =
  | { ask: number; name: string; args: readonly unknown[] }
  | { tell: string; args: readonly unknown[] }
  | { answer: number; value: unknown }
  | { answer: number; error: string; name: string; fault: Fault | undefined };

export function createLink(channel: Channel, answers: Answers): Link {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();
  let last = 0;

  const work = (name: string, args: readonly unknown[]): unknown =>
    Object.hasOwn(answers, name)
      ? answers[name]!(...(args as never[]))
      : fail("internal", `A process was asked for "${name}", which it does not know.`);

  // A message that can no longer be sent needs no answer: "disconnect" ends every question.
  const send = (message: Message): void =>
    void (channel.connected && channel.send!(message, undefined, undefined, () => {}));

  async function answer(ask: number, name: string, args: readonly unknown[]): Promise<void> {
    try {
      send({ answer: ask, value: await work(name, args) });
    } catch (error) {
      const told = faultOf(error);
      // The cause may be anything; what crosses is plain.
      send({
        answer: ask,
        error: error instanceof Error ? error.message : String(error),
        name: error instanceof Error ? error.name : "Error",
        fault: told && { ...told, cause: undefined },
      });
    }
  }

  channel.on("message", (message) => {
    const said = message as Message;
    if ("ask" in said) void answer(said.ask, said.name, said.args);
    else if ("tell" in said) work(said.tell, said.args);
    else if ("answer" in said) {
      const asked = waiting.get(said.answer);
      waiting.delete(said.answer);
      if ("value" in said) asked?.resolve(said.value as never);
      else asked?.reject(revived(said.error, said.name, said.fault));
    }
  });
  channel.once("disconnect", () => {
    for (const { reject } of waiting.values()) reject(gone());
    waiting.clear();
  });

  return {
    ask: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (!channel.connected) return reject(gone());
        const ask = ++last;
        waiting.set(ask, { resolve, reject });
        try {
          send({ ask, name, args });
        } catch (error) {
          // Not everything can be sent.
          waiting.delete(ask);
          reject(error);
        }
      }),
    tell: (tell, ...args) => send({ tell, args }),
  };
}

const gone = (): Error => new Error("The other process is gone.");

/** Faults keep their kind on the way between processes. */
function revived(message: string, name: string, said: Fault | undefined): Error {
  if (!said) return Object.assign(new Error(message), { name });
  return fault(said.kind, said.message, said);
}
