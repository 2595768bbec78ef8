// Protocol between a service manager (systemd) and the gateway: sockets that it opened, and
// notifications that the service is ready, reloads, stops, or is alive. Node.js has no Unix
// datagram sockets, so each notification runs `systemd-notify`, which ships with systemd.
import { execFile } from "node:child_process";
import { hrtime } from "node:process";
import type { InheritedSockets } from "../../server/gateway-options.ts";
import { fail } from "../../model/error.ts";

type Environment = Record<string, string | undefined>;

/** Number of the first file descriptor that is passed. */
const FIRST_DESCRIPTOR = 3;

/**
 * Returns the passed sockets by name. `admin` is the socket of the admin listener. All others are
 * sockets of client listeners, in order. In a hot restart, the old gateway passes its sockets in
 * the same way, and `before` is its process ID.
 */
export function inheritedSockets(
  env: Environment,
  pid = process.pid,
  before?: number,
): InheritedSockets | undefined {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "" } = env;
  const count = Number(LISTEN_FDS);
  // The variables are for this process only, not for the processes that it starts.
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  if ((Number(LISTEN_PID) !== pid && before === undefined) || !(count > 0)) return undefined;
  const names = LISTEN_FDNAMES.split(":");
  const clients: number[] = [];
  let admin: number | undefined;
  for (let i = 0; i < count; i++) {
    if (names[i] !== "admin") clients.push(FIRST_DESCRIPTOR + i);
    else if (admin === undefined) admin = FIRST_DESCRIPTOR + i;
    else fail("invalid", "Two inherited sockets are named admin.");
  }
  return { clients, admin };
}

export interface ServiceManagerOptions {
  readonly env: Environment;
  /** Returns the gateway's status in one line. */
  readonly status: () => Promise<string>;
  /** Resolves when the gateway and its ledger have answered. */
  readonly checkAlive: () => Promise<void>;
  /** Called once, when a notification fails. */
  readonly onError: (error: Error) => void;
  readonly notify?: (words: readonly string[]) => Promise<void>;
}

/**
 * Number of heartbeats per watchdog period. A liveness check must finish within the time between
 * two heartbeats.
 */
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

  /** Returns undefined if no service manager is listening. */
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

  /**
   * Notifies the service manager that another process is now the gateway. Without this, the manager
   * would stop the service and the new process when this process ends.
   */
  async notifyNewMainPid(pid: number): Promise<void> {
    this[Symbol.dispose]();
    await this.#send(`MAINPID=${pid}`);
  }

  /**
   * Sends a heartbeat. If the ledger does not respond, no heartbeat is sent, and the service
   * manager restarts the gateway.
   */
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

/** Returns undefined if the service manager does not watch this process. */
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
