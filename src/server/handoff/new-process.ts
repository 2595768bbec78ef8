// Starts the process that replaces this gateway: the same command, with the currently installed
// version and the open sockets of this process. The new process first tests as much as possible.
// This process then releases the store, and shuts down only when the new process serves requests.
// If anything fails before that, this gateway is unchanged.
import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { childProcessFlags } from "../../lib/disable-debugger.ts";
import type { Log } from "../../lib/log/log.ts";
import { fail } from "../../model/error.ts";
import { type IpcChannel, createIpcLink, type IpcLink } from "../../runtime/workers/ipc-link.ts";
import {
  type HandedOverState,
  REPLACES_PID_VARIABLE,
  type NewProcessCalls,
} from "./handoff-protocol.ts";

/**
 * Maximum time in milliseconds from the start of the new process until it serves requests. It may
 * include the migration of a large ledger.
 */
const START_TIMEOUT_MS = 600_000;

/** A socket that the new process receives, named as by a service manager. */
export interface InheritedSocket {
  readonly fd: number;
  readonly name: "clients" | "admin";
}

export interface NewProcessOptions {
  readonly sockets: readonly InheritedSocket[];
  readonly log: Log;
  readonly handlers: Omit<NewProcessCalls, "storeOpened" | "serving" | "takeStore">;
  /** Releases the store, which only one process may have open. */
  releaseStore(wanted: Parameters<NewProcessCalls["takeStore"]>[0]): Promise<HandedOverState>;
  /** Called if the hot restart fails after `releaseStore`. */
  takeBack(): Promise<void>;
  /** Called when the new process has opened the store. Store calls go to it from then on. */
  onStoreTaken(successor: IpcLink): void;
}

export interface NewProcess {
  readonly pid: number;
  readonly link: IpcLink;
}

export async function startNewProcess(options: NewProcessOptions): Promise<NewProcess> {
  const child = spawnNewProcess(options.sockets);
  const ended = whenExited(child);
  const serving = Promise.withResolvers<"serving">();
  let letGo: Promise<HandedOverState> | undefined;
  const link = createIpcLink(child as IpcChannel, {
    ...options.handlers,
    takeStore: (wanted: Parameters<NewProcessCalls["takeStore"]>[0]) =>
      (letGo ??= options.releaseStore(wanted)),
    storeOpened: () => options.onStoreTaken(link),
    serving: () => serving.resolve("serving"),
  });
  const timeout = new AbortController();
  const tooLong = sleep(START_TIMEOUT_MS, "it did not start serving in time", {
    signal: timeout.signal,
    ref: false,
  });
  const how = await Promise.race([serving.promise, ended, tooLong]);
  timeout.abort();
  tooLong.catch(() => {});
  if (how === "serving") {
    void ended.then((end) =>
      options.log.error({ pid: child.pid, end }, "new gateway process ended"),
    );
    child.unref();
    return { pid: child.pid!, link };
  }
  child.kill("SIGKILL");
  await ended;
  if (
    letGo &&
    (await letGo.then(
      () => true,
      () => false,
    ))
  )
    await options.takeBack();
  return fail(
    "unavailable",
    `The new gateway process did not start serving: ${how}. The current process continues.`,
    {
      code: "no_successor",
    },
  );
}

/**
 * Starts the program from which this process was started. The installed version may have changed
 * since then.
 */
function spawnNewProcess(sockets: readonly InheritedSocket[]): ChildProcess {
  const { WATCHDOG_PID: _, LISTEN_PID: __, ...env } = process.env;
  return spawn(process.execPath, [...childProcessFlags(), ...process.argv.slice(1)], {
    // Ctrl-C in a terminal must not end the new process together with the old process.
    detached: true,
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", ...sockets.map(({ fd }) => fd), "ipc"],
    env: {
      ...env,
      [REPLACES_PID_VARIABLE]: String(process.pid),
      LISTEN_FDS: String(sockets.length),
      LISTEN_FDNAMES: sockets.map(({ name }) => name).join(":"),
    },
  });
}

const whenExited = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`));
    child.once("error", (error) => resolve(error.message));
  });
