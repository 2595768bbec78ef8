// Entry point of the worker threads: the writer, the reader, or a thread for long tasks. Requests
// start in the order of their messages. A long read yields, so a later request may be answered
// before it.
import { parentPort, workerData } from "node:worker_threads";
import { getFault } from "tollgate/plugin";
import { LongTasks } from "./long-tasks.ts";
import { Reader } from "../read/reader.ts";
import type { ReadToken } from "../data/batch-reader.ts";
import type { SqliteSettings } from "../write/ledger-session.ts";
import { Writer } from "../write/writer.ts";

/** The role of a thread, with its settings. */
export type ThreadRole =
  | { role: "writer"; settings: SqliteSettings; instance: string }
  | { role: "reader" | "long-tasks"; settings: Pick<SqliteSettings, "file"> };

export interface ThreadRequest {
  id: number;
  method: string;
  args: readonly unknown[];
  /** Whether the method checks between strides whether the caller is still waiting. */
  isCancelable: boolean;
}
export type ThreadResponse = { id: number } & (
  | { value: unknown }
  | { message: string; fault: ReturnType<typeof getFault> }
);

/** Notifies the thread that the caller no longer waits for request `cancel`. */
export interface ThreadCancel {
  cancel: number;
}

const port = parentPort!;
/** Running cancelable requests, by request ID. */
const activeReads = new Map<number, { -readonly [K in keyof ReadToken]: ReadToken[K] }>();
const roleData = workerData as ThreadRole;
/** Created by the first request, `start`, so that an error is returned to its caller. */
let service: Writer | Reader | LongTasks | undefined;

/** Returns a promise only if the method does, so that other responses need no further turn. */
function handleRequest(request: ThreadRequest): ThreadResponse | Promise<ThreadResponse> {
  const { id } = request;
  try {
    const value = runMethod(request);
    return value instanceof Promise
      ? value.then(
          (result: unknown) => respond(request, result),
          (error: unknown) => toFailure(id, error),
        )
      : respond(request, value);
  } catch (error) {
    return toFailure(id, error);
  }
}

function runMethod({ id, method, args, isCancelable }: ThreadRequest): unknown {
  if (method === "start") {
    service =
      roleData.role === "writer"
        ? new Writer(roleData.settings, roleData.instance)
        : roleData.role === "reader"
          ? new Reader(roleData.settings)
          : new LongTasks(roleData.settings);
    return "openResult" in service ? service.openResult : undefined;
  }
  const of = service as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
  if (!isCancelable) return of[method]!(...args);
  const still = { isWanted: true };
  activeReads.set(id, still);
  return of[method]!(...args, still);
}

function respond({ id, method, isCancelable }: ThreadRequest, value: unknown): ThreadResponse {
  if (isCancelable) activeReads.delete(id);
  if (method === "close") port.close();
  return { id, value };
}

function toFailure(id: number, error: unknown): ThreadResponse {
  activeReads.delete(id);
  const fault = getFault(error);
  // The cause can be any value. Only plain data can be sent to the other thread.
  return {
    id,
    message: (error as Error).message,
    fault: fault && { ...fault, cause: undefined },
  };
}

const send = (response: ThreadResponse): void => port.postMessage(response);

port.on("message", (message: ThreadRequest | ThreadCancel) => {
  if ("id" in message) {
    const response = handleRequest(message);
    if (response instanceof Promise) void response.then(send);
    else send(response);
    return;
  }
  const still = activeReads.get(message.cancel);
  if (still) still.isWanted = false;
});
