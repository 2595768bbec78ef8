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

async function handleRequest({
  id,
  method,
  args,
  isCancelable,
}: ThreadRequest): Promise<ThreadResponse> {
  try {
    if (method === "start") {
      service =
        roleData.role === "writer"
          ? new Writer(roleData.settings, roleData.instance)
          : roleData.role === "reader"
            ? new Reader(roleData.settings)
            : new LongTasks(roleData.settings);
      return { id, value: "openResult" in service ? service.openResult : undefined };
    }
    const of = service as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
    const still = { isWanted: true };
    if (isCancelable) activeReads.set(id, still);
    const value = await (isCancelable ? of[method]!(...args, still) : of[method]!(...args));
    if (method === "close") port.close();
    return { id, value };
  } catch (error) {
    const fault = getFault(error);
    // The cause can be any value. Only plain data can be sent to the other thread.
    return {
      id,
      message: (error as Error).message,
      fault: fault && { ...fault, cause: undefined },
    };
  } finally {
    activeReads.delete(id);
  }
}

port.on("message", async (message: ThreadRequest | ThreadCancel) => {
  if ("id" in message) return port.postMessage(await handleRequest(message));
  const still = activeReads.get(message.cancel);
  if (still) still.isWanted = false;
});
