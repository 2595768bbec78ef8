// What a service manager (systemd) and a service say to each other: sockets that it has opened, and that the service is ready, reloads, stops,
// and is alive. Node has no datagram socket of that family, so each word is a run of `systemd-notify`, which systemd brings with it.
import { execFile } from "node:child_process";
import { hrtime } from "node:process";
import type { InheritedSockets } from "../../server/gateway-options.ts";
import { fail } from "../../model/error.ts";

type Environment = Record<string, string | undefined>;

/** The first descriptor that is handed over. */
const FIRST_DESCRIPTOR = 3;

/**
 * Sockets by their names: `admin` is the admin listener's, all others are clients', in their order. A gateway that is replaced hands over its
 * own in the same words; `before` is its process.
 */
export function inheritedSockets(
  env: Environment,
  pid = process.pid,
  before?: number,
): InheritedSockets | undefined {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "" } = env;
  const count = Number(LISTEN_FDS);
  // They are meant for the process that has this number, and not for those that it starts.
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  if ((Number(LISTEN_PID) !== pid && before === undefined) || !(count > 0)) return undefined;
  const names = LISTEN_FDNAMES.split(":");
  const clients: number[] = [];
  let admin: number | undefined;
  for (let i = 0; i < count; i++) {
    if (names[i] !== "admin") clients.push(FIRST_DESCRIPTOR + i);
    else if (admin === undefined) admin = FIRST_DESCRIPTOR + i;
    else fail("invalid", "Two of the sockets that were handed over are named admin.");
  }
  return { clients, admin };
}

export interface ServiceManagerOptions {
  readonly env: Environment;
  /** One line on how the gateway is. */
  readonly status: () => Promise<string>;
  /** Resolves when the gateway, its ledger too, has answered. */
  readonly checkAlive: () => Promise<void>;
  /** A word could not be said: told once. */
  readonly onError: (error: Error) => void;
  readonly notify?: (words: readonly string[]) => Promise<void>;
}

/** In which nothing that asks for life may take longer than the time between two signs of it. */
const HEARTBEATS_PER_WINDOW = 2;

export class ServiceManager implements Disposable {
  readonly #options: ServiceManagerOptions;
  readonly #notify: (words: readonly string[]) => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #hasReportedError = false;

  constructor(of: ServiceManagerOptions) {
    this.#options = of;
    this.#notify = of.notify ?? runSystemdNotify;
  }

  /** Undefined: no service manager listens. */
  static create(of: ServiceManagerOptions): ServiceManager | undefined {
    return of.env["NOTIFY_SOCKET"] ? new ServiceManager(of) : undefined;
  }

  async notifyReady(): Promise<void> {
    const ms = watchdogMs(this.#options.env);
    const first = ms !== undefined && this.#timer === undefined;
    if (first)
      this.#timer = setInterval(
        () => void this.#sendHeartbeat(),
        ms / HEARTBEATS_PER_WINDOW,
      ).unref();
    const status = `STATUS=${await this.#options.status()}`;
    const alive = first ? ["WATCHDOG=1"] : [];
    await this.#send("READY=1", `MAINPID=${process.pid}`, status, ...alive);
  }

  notifyReloading(): Promise<void> {
    return this.#send("RELOADING=1", `MONOTONIC_USEC=${hrtime.bigint() / 1_000n}`);
  }

  async notifyStopping(): Promise<void> {
    this[Symbol.dispose]();
    await this.#send("STOPPING=1", "STATUS=stopping");
  }

  /** Another process is the gateway now. A manager that did not know it would end the service, and that process, with this one. */
  async notifyNewMainPid(pid: number): Promise<void> {
    this[Symbol.dispose]();
    await this.#send(`MAINPID=${pid}`);
  }

  /** A gateway whose ledger does not answer says nothing, and is started again. */
  async #sendHeartbeat(): Promise<void> {
    try {
      await this.#options.checkAlive();
    } catch {
      return;
    }
    await this.#send("WATCHDOG=1", `STATUS=${await this.#options.status()}`);
  }

  async #send(...words: readonly string[]): Promise<void> {
    try {
      await this.#notify(words);
    } catch (error) {
      if (!this.#hasReportedError) this.#options.onError(error as Error);
      this.#hasReportedError = true;
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

const runSystemdNotify = (words: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile("systemd-notify", words, { timeout: 5_000 }, (error) =>
      error ? reject(error) : resolve(),
    );
  });
