// The gateway that takes the place of this one, from the side of this one: the same command with what is installed now, with the sockets
// that are open here. It tries all that it can; then this one lets go of the store, and only when the new one serves it leaves. Whatever
// goes wrong before that changes nothing.
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

/** From its first line to the moment in which it serves; a large ledger may have to be brought to a new form meanwhile. */
const START_TIMEOUT_MS = 600_000;

/** What it is given: its sockets by name, as a service manager names them. */
export interface InheritedSocket {
  readonly fd: number;
  readonly name: "clients" | "admin";
}

export interface NewProcessOptions {
  readonly sockets: readonly InheritedSocket[];
  readonly log: Log;
  readonly handlers: Omit<NewProcessCalls, "storeOpened" | "serving" | "takeStore">;
  /** Only one may have it: let go of it. */
  releaseStore(wanted: Parameters<NewProcessCalls["takeStore"]>[0]): Promise<HandedOverState>;
  /** It has come to nothing after that. */
  takeBack(): Promise<void>;
  /** It has the store, and is asked from now on. */
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
  const tooLong = sleep(START_TIMEOUT_MS, "it did not serve in time", {
    signal: timeout.signal,
    ref: false,
  });
  const how = await Promise.race([serving.promise, ended, tooLong]);
  timeout.abort();
  tooLong.catch(() => {});
  if (how === "serving") {
    void ended.then((end) =>
      options.log.error({ pid: child.pid, end }, "the new gateway has ended"),
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
  return fail("unavailable", `The new gateway does not serve: ${how}. This one goes on.`, {
    code: "no_successor",
  });
}

/** What was installed where this one began; it may be another version by now. */
function spawnNewProcess(sockets: readonly InheritedSocket[]): ChildProcess {
  const { WATCHDOG_PID: _, LISTEN_PID: __, ...env } = process.env;
  return spawn(process.execPath, [...childProcessFlags(), ...process.argv.slice(1)], {
    // A terminal's Ctrl-C is for the one that runs, and this one is about to go.
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
