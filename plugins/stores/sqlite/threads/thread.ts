// This side of the threads: a call is a message there and a message back. A thread that dies fails what it was asked.
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

/** Those whose last argument says whether the caller still waits. */
export type CancelableMethodOf<S> = string &
  { [M in keyof S]: Required<Args<S[M]>> extends [...unknown[], ReadToken] ? M : never }[keyof S];
/** What they are called with besides that. */
export type CancelableArgs<S, M extends keyof S> =
  Required<Args<S[M]>> extends [...infer A, ReadToken] ? A : never;

/** A thread that runs the methods of `S`. */
export interface WorkerThread<S> {
  call<M extends MethodOf<S>>(method: M, ...args: MethodArgs<S, M>): Promise<MethodResult<S, M>>;
  /** A long one, which ends early when it is not wanted any more. */
  callCancelable<M extends CancelableMethodOf<S>>(
    signal: AbortSignal | undefined,
    method: M,
    ...args: CancelableArgs<S, M>
  ): Promise<MethodResult<S, M>>;
  /** First of all. Of a writer: what was done when the ledger was opened. */
  start(): Promise<OpenResult | undefined>;
  /** It ends what it has under way, and goes. */
  close(): Promise<void>;
  readonly isAlive: boolean;
  /** At once, whatever it is doing. */
  kill(): Promise<unknown>;
}

/** From source and from dist alike: beside this file, with this file's own ending. The build keeps it beside whatever file it puts this one in. */
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
