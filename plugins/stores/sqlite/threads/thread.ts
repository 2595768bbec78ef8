// Calls the methods of a worker thread from the main thread. A call is one request message and one
// response message. If the thread dies, its pending calls are rejected.
import { Worker } from "node:worker_threads";
import { fail } from "tollgate/plugin";
import type { OpenResult } from "../write/ledger-session.ts";
import type { ReadToken } from "../data/batch-reader.ts";
import type { ThreadCancel, ThreadRequest, ThreadResponse, ThreadRole } from "./thread-entry.ts";

type Args<F> = F extends (...args: infer A) => unknown ? A : never;

/** The names of the methods of `S`. */
export type MethodOf<S> = string &
  { [M in keyof S]: S[M] extends (...args: never[]) => unknown ? M : never }[keyof S];
export type MethodArgs<S, M extends keyof S> = Args<S[M]>;
export type MethodResult<S, M extends keyof S> = S[M] extends (...args: never[]) => infer R
  ? Awaited<R>
  : never;

/**
 * Names of methods whose last argument is a `ReadToken`, which shows whether the caller is still
 * waiting.
 */
export type CancelableMethodOf<S> = string &
  { [M in keyof S]: Required<Args<S[M]>> extends [...unknown[], ReadToken] ? M : never }[keyof S];
/** Arguments of a cancelable method without the `ReadToken`. */
export type CancelableArgs<S, M extends keyof S> =
  Required<Args<S[M]>> extends [...infer A, ReadToken] ? A : never;

/** A thread that runs the methods of `S`. */
export interface WorkerThread<S> {
  call<M extends MethodOf<S>>(method: M, ...args: MethodArgs<S, M>): Promise<MethodResult<S, M>>;
  /** Calls a long-running method. It returns early if the signal is aborted. */
  callCancelable<M extends CancelableMethodOf<S>>(
    signal: AbortSignal | undefined,
    method: M,
    ...args: CancelableArgs<S, M>
  ): Promise<MethodResult<S, M>>;
  /**
   * Starts the thread. It must be called before all other methods. For a writer, returns the result
   * of opening the ledger.
   */
  start(): Promise<OpenResult | undefined>;
  /** Finishes the current work and ends the thread. */
  close(): Promise<void>;
  readonly isAlive: boolean;
  /** Terminates the thread immediately. */
  kill(): Promise<unknown>;
}

/**
 * The entry file of the thread: in the same folder, with the same extension as this file, both in
 * source and in `dist`. The build places it next to the bundle that contains this file.
 */
const WORKER_URL = new URL(
  `./thread-entry${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);

export function startThread<S>(role: ThreadRole): WorkerThread<S> {
  const worker = new Worker(WORKER_URL, { workerData: role, name: `ledger ${role.role}` });
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();
  let ids = 0;
  let alive = true;

  function died(error: Error): void {
    alive = false;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }
  worker.on("error", (error) => died(new Error("The ledger thread failed.", { cause: error })));
  worker.on("exit", () => died(new Error("The ledger thread has exited.")));
  worker.on("message", (answered: ThreadResponse) => {
    const pending = waiting.get(answered.id);
    waiting.delete(answered.id);
    // Only pending calls keep the process running.
    if (waiting.size === 0) worker.unref();
    if (!pending) return;
    if ("value" in answered) pending.resolve(answered.value as never);
    else pending.reject(toError(answered));
  });
  worker.unref();

  return {
    get isAlive() {
      return alive;
    },
    start: () => ask(++ids, "start", [], false),
    close: () => ask(++ids, "close", [], false),
    kill: () => worker.terminate(),
    call: (method, ...args) => ask(++ids, method, args as readonly unknown[], false),
    callCancelable(signal, method, ...args) {
      const id = ++ids;
      const drop = () => worker.postMessage({ cancel: id } satisfies ThreadCancel, []);
      signal?.addEventListener("abort", drop, { once: true });
      return ask<never>(id, method, args as readonly unknown[], true).finally(() =>
        signal?.removeEventListener("abort", drop),
      );
    },
  };

  function ask<T>(id: number, method: string, args: readonly unknown[], long: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!alive) return reject(new Error("The ledger thread has exited."));
      waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, method, args, isCancelable: long } satisfies ThreadRequest, []);
    });
  }
}

/** Rebuilds an error. Faults keep their kind when they are sent between threads. */
function toError({ message, fault }: Extract<ThreadResponse, { message: string }>): unknown {
  if (!fault) return new Error(message);
  try {
    return fail(fault.kind, fault.message, fault);
  } catch (error) {
    return error;
  }
}
