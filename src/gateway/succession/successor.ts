// The gateway that takes the place of this one, from the side of this one: the same command with what is installed now, with the sockets
// that are open here. It tries all that it can; then this one lets go of the store, and only when the new one serves it leaves. Whatever
// goes wrong before that changes nothing.
import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { flagsOfOurs } from "../../lib/debugger.ts";
import type { Log } from "../../lib/log.ts";
import { fail } from "../../model/error.ts";
import { type Channel, createLink, type Link } from "../workers/link.ts";
import { type Estate, SUCCEEDS, type SuccessorAsks } from "./said.ts";

/** From its first line to the moment in which it serves; a large ledger may have to be brought to a new form meanwhile. */
const START_MS = 600_000;

/** What it is given: its sockets by name, as a service manager names them. */
export interface HandedSocket {
  readonly fd: number;
  readonly name: "clients" | "admin";
}

export interface SuccessorOf {
  readonly sockets: readonly HandedSocket[];
  readonly log: Log;
  readonly answers: Omit<SuccessorAsks, "holding" | "serving" | "take">;
  /** Only one may have it: let go of it. */
  letGo(wanted: Parameters<SuccessorAsks["take"]>[0]): Promise<Estate>;
  /** It has come to nothing after that. */
  takeBack(): Promise<void>;
  /** It has the store, and is asked from now on. */
  lend(successor: Link): void;
}

export interface Successor {
  readonly pid: number;
  readonly link: Link;
}

export async function startSuccessor(of: SuccessorOf): Promise<Successor> {
  const child = started(of.sockets);
  const ended = ending(child);
  const serving = Promise.withResolvers<"serving">();
  let letGo: Promise<Estate> | undefined;
  const link = createLink(child as Channel, {
    ...of.answers,
    take: (wanted: Parameters<SuccessorAsks["take"]>[0]) => (letGo ??= of.letGo(wanted)),
    holding: () => of.lend(link),
    serving: () => serving.resolve("serving"),
  });
  const late = new AbortController();
  const tooLong = sleep(START_MS, "it did not serve in time", { signal: late.signal, ref: false });
  const how = await Promise.race([serving.promise, ended, tooLong]);
  late.abort();
  tooLong.catch(() => {});
  if (how === "serving") {
    void ended.then((end) => of.log.error({ pid: child.pid, end }, "the new gateway has ended"));
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
    await of.takeBack();
  return fail("unavailable", `The new gateway does not serve: ${how}. This one goes on.`, {
    code: "no_successor",
  });
}

/** What was installed where this one began; it may be another version by now. */
function started(sockets: readonly HandedSocket[]): ChildProcess {
  const { WATCHDOG_PID: _, LISTEN_PID: __, ...env } = process.env;
  return spawn(process.execPath, [...flagsOfOurs(), ...process.argv.slice(1)], {
    // A terminal's Ctrl-C is for the one that runs, and this one is about to go.
    detached: true,
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", ...sockets.map(({ fd }) => fd), "ipc"],
    env: {
      ...env,
      [SUCCEEDS]: String(process.pid),
      LISTEN_FDS: String(sockets.length),
      LISTEN_FDNAMES: sockets.map(({ name }) => name).join(":"),
    },
  });
}

const ending = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`));
    child.once("error", (error) => resolve(error.message));
  });
