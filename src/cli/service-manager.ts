// What a service manager (systemd) and a service say to each other: sockets that it has opened, and that the service is ready, reloads, stops,
// and is alive. Node has no datagram socket of that family, so each word is a run of `systemd-notify`, which systemd brings with it.
import { execFile } from "node:child_process";
import { hrtime } from "node:process";
import type { HandedOver } from "../gateway/options.ts";
import { fail } from "../model/error.ts";

type Environment = Record<string, string | undefined>;

/** The first descriptor that is handed over. */
const FIRST = 3;

/**
 * Sockets by their names: `admin` is the admin listener's, all others are clients', in their order. A gateway that is replaced hands over its
 * own in the same words; `before` is its process.
 */
export function handedOver(
  env: Environment,
  pid = process.pid,
  before?: number,
): HandedOver | undefined {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "" } = env;
  const count = Number(LISTEN_FDS);
  // They are meant for the process that has this number, and not for those that it starts.
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  if ((Number(LISTEN_PID) !== pid && before === undefined) || !(count > 0)) return undefined;
  const names = LISTEN_FDNAMES.split(":");
  const clients: number[] = [];
  let admin: number | undefined;
  for (let i = 0; i < count; i++) {
    if (names[i] !== "admin") clients.push(FIRST + i);
    else if (admin === undefined) admin = FIRST + i;
    else fail("invalid", "Two of the sockets that were handed over are named admin.");
  }
  return { clients, admin };
}

export interface ServiceManagerOptions {
  readonly env: Environment;
  /** One line on how the gateway is. */
  readonly status: () => Promise<string>;
  /** Resolves when the gateway, its ledger too, has answered. */
  readonly alive: () => Promise<void>;
  /** A word could not be said: told once. */
  readonly failed: (error: Error) => void;
  readonly say?: (words: readonly string[]) => Promise<void>;
}

/** In which nothing that asks for life may take longer than the time between two signs of it. */
const PARTS = 2;

export class ServiceManager implements Disposable {
  readonly #of: ServiceManagerOptions;
  readonly #say: (words: readonly string[]) => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #told = false;

  constructor(of: ServiceManagerOptions) {
    this.#of = of;
    this.#say = of.say ?? notify;
  }

  /** Undefined: no service manager listens. */
  static of(of: ServiceManagerOptions): ServiceManager | undefined {
    return of.env["NOTIFY_SOCKET"] ? new ServiceManager(of) : undefined;
  }

  async ready(): Promise<void> {
    const ms = watchdogMs(this.#of.env);
    const first = ms !== undefined && this.#timer === undefined;
    if (first) this.#timer = setInterval(() => void this.#live(), ms / PARTS).unref();
    const status = `STATUS=${await this.#of.status()}`;
    const alive = first ? ["WATCHDOG=1"] : [];
    await this.#tell("READY=1", `MAINPID=${process.pid}`, status, ...alive);
  }

  reloading(): Promise<void> {
    return this.#tell("RELOADING=1", `MONOTONIC_USEC=${hrtime.bigint() / 1_000n}`);
  }

  async stopping(): Promise<void> {
    this[Symbol.dispose]();
    await this.#tell("STOPPING=1", "STATUS=stopping");
  }

  /** Another process is the gateway now. A manager that did not know it would end the service, and that process, with this one. */
  async succeeded(pid: number): Promise<void> {
    this[Symbol.dispose]();
    await this.#tell(`MAINPID=${pid}`);
  }

  /** A gateway whose ledger does not answer says nothing, and is started again. */
  async #live(): Promise<void> {
    try {
      await this.#of.alive();
    } catch {
      return;
    }
    await this.#tell("WATCHDOG=1", `STATUS=${await this.#of.status()}`);
  }

  async #tell(...words: readonly string[]): Promise<void> {
    try {
      await this.#say(words);
    } catch (error) {
      if (!this.#told) this.#of.failed(error as Error);
      this.#told = true;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Undefined: it does not watch this process. */
export function watchdogMs(env: Environment, pid = process.pid): number | undefined {
  const { WATCHDOG_USEC, WATCHDOG_PID } = env;
  if (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== pid) return undefined;
  const ms = Number(WATCHDOG_USEC) / 1_000;
  return ms > 0 ? ms : undefined;
}

const notify = (words: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile("systemd-notify", words, { timeout: 5_000 }, (error) =>
      error ? reject(error) : resolve(),
    );
  });
