// This side of the threads: a call is a message there and a message back. A thread that dies fails what it was asked.
import { Worker } from "node:worker_threads";
import { fail } from "tollgate/plugin";
import type { ThreadResponse, ThreadRequest, ThreadRole } from "./thread-entry.ts";

export interface WorkerThread {
  call<T>(method: string, ...args: readonly unknown[]): Promise<T>;
  /** A long one, which ends early when it is not wanted any more. */
  callCancelable<T>(
    signal: AbortSignal | undefined,
    method: string,
    ...args: readonly unknown[]
  ): Promise<T>;
  readonly isAlive: boolean;
  /** At once, whatever it is doing. */
  kill(): Promise<unknown>;
}

/** From source and from dist alike: beside this file, with this file's own ending. The build keeps it beside whatever file it puts this one in. */
const WORKER_URL = new URL(
  `./thread-entry${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);

export function startThread(role: ThreadRole): WorkerThread {
  const worker = new Worker(WORKER_URL, { workerData: role, name: `ledger ${role.role}` });
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();
  let ids = 0;
  let alive = true;

  function died(error: Error): void {
    alive = false;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }
  worker.on("error", (error) => died(new Error("The ledger's thread failed.", { cause: error })));
  worker.on("exit", () => died(new Error("The ledger's thread has ended.")));
  worker.on("message", (answered: ThreadResponse) => {
    const asked = waiting.get(answered.id);
    waiting.delete(answered.id);
    // Only what is waited for keeps the process alive.
    if (waiting.size === 0) worker.unref();
    if (!asked) return;
    if ("value" in answered) asked.resolve(answered.value as never);
    else asked.reject(toError(answered));
  });
  worker.unref();

  return {
    get isAlive() {
      return alive;
    },
    kill: () => worker.terminate(),
    call: (method, ...args) => ask(++ids, method, args, false),
    callCancelable(signal, method, ...args) {
      const id = ++ids;
      const drop = () => worker.postMessage({ drop: id }, []);
      signal?.addEventListener("abort", drop, { once: true });
      return ask<never>(id, method, args, true).finally(() =>
        signal?.removeEventListener("abort", drop),
      );
    },
  };

  function ask<T>(id: number, method: string, args: readonly unknown[], long: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!alive) return reject(new Error("The ledger's thread has ended."));
      waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, method, args, isCancelable: long } satisfies ThreadRequest, []);
    });
  }
}

/** Faults keep their kind on the way between threads. */
function toError({ message, fault }: Extract<ThreadResponse, { message: string }>): unknown {
  if (!fault) return new Error(message);
  try {
    return fail(fault.kind, fault.message, fault);
  } catch (error) {
    return error;
  }
}
