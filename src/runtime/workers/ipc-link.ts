// Requests between two processes: each request is a message, and so is its response. All messages
// are plain data, including faults. Requests to a process that has ended fail with an error.
import { fail, createFault, getFault, type Fault } from "../../model/error.ts";

/** Handlers of this side, by name. */
export type IpcHandlers = Readonly<Record<string, (...args: never[]) => unknown>>;

export interface IpcLink {
  call<T>(name: string, ...args: readonly unknown[]): Promise<T>;
  /** Sends a message without a response. The order is kept relative to calls. */
  notify(name: string, ...args: readonly unknown[]): void;
}

/** The channel to another process: a child, or `process` itself within a child. */
export interface IpcChannel {
  readonly connected?: boolean;
  send?(message: object, handle: undefined, options: undefined, sent: () => void): boolean;
  on(event: "message", hear: (message: unknown) => void): unknown;
  once(event: "disconnect", over: () => void): unknown;
}

type IpcMessage =
  | { call: number; name: string; args: readonly unknown[] }
  | { notify: string; args: readonly unknown[] }
  | { reply: number; value: unknown }
  | { reply: number; error: string; name: string; fault: Fault | undefined };

export function createIpcLink(channel: IpcChannel, answers: IpcHandlers): IpcLink {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();
  let last = 0;

  const work = (name: string, args: readonly unknown[]): unknown =>
    Object.hasOwn(answers, name)
      ? answers[name]!(...(args as never[]))
      : fail("internal", `A process received the unknown request "${name}".`);

  // A message that can no longer be sent needs no response, because "disconnect" rejects every open
  // request.
  const send = (message: IpcMessage): void =>
    void (channel.connected && channel.send!(message, undefined, undefined, () => {}));

  async function answer(ask: number, name: string, args: readonly unknown[]): Promise<void> {
    try {
      send({ reply: ask, value: await work(name, args) });
    } catch (error) {
      const fault = getFault(error);
      // The cause can be any value, but only plain data can be sent.
      send({
        reply: ask,
        error: error instanceof Error ? error.message : String(error),
        name: error instanceof Error ? error.name : "Error",
        fault: fault && { ...fault, cause: undefined },
      });
    }
  }

  channel.on("message", (message) => {
    const received = message as IpcMessage;
    if ("call" in received) void answer(received.call, received.name, received.args);
    else if ("notify" in received) work(received.notify, received.args);
    else if ("reply" in received) {
      const pending = waiting.get(received.reply);
      waiting.delete(received.reply);
      if ("value" in received) pending?.resolve(received.value as never);
      else pending?.reject(toError(received.error, received.name, received.fault));
    }
  });
  channel.once("disconnect", () => {
    for (const { reject } of waiting.values()) reject(createDisconnectedError());
    waiting.clear();
  });

  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (!channel.connected) return reject(createDisconnectedError());
        const ask = ++last;
        waiting.set(ask, { resolve, reject });
        try {
          send({ call: ask, name, args });
        } catch (error) {
          // Some values cannot be sent.
          waiting.delete(ask);
          reject(error);
        }
      }),
    notify: (tell, ...args) => send({ notify: tell, args }),
  };
}

const createDisconnectedError = (): Error => new Error("The other process has exited.");

/** Restores an error that was sent by another process. Faults keep their kind. */
function toError(message: string, name: string, value: Fault | undefined): Error {
  if (!value) return Object.assign(new Error(message), { name });
  return createFault(value.kind, value.message, value);
}
