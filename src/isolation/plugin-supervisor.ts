// Keeps an isolated plugin connected and set up. After each failure, it restarts the plugin with
// growing backoff. Calls that arrive in the meantime wait for the next connection for a short time.
import { createConnection } from "node:net";
import type { Duplex } from "node:stream";
import type { PluginOutage } from "../lib/plugin-outage.ts";
import { wallClock } from "../lib/time/wall-clock.ts";
import { PluginConnection, PluginFailure, type ConnectionOptions } from "./plugin-connection.ts";

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** Time in milliseconds after which a connection counts as healthy and resets the backoff. */
const HEALTHY_AFTER_MS = 30_000;
/** Timeout in milliseconds for connecting and setup. */
const SETUP_TIMEOUT_MS = 29_000;
/** Maximum number of calls that wait for a new connection. */
const MAX_WAITING = 1_000;
/** Longest backoff in milliseconds for which calls wait. */
const MAX_WAIT_MS = 1_000;

/** A new endpoint of the plugin: a process that was started, or a socket that was connected. */
export interface PluginEndpoint {
  readonly stream: Duplex;
  kill(): void;
  /** Resolves with how the process ended, if that can be known. */
  readonly exited?: Promise<string>;
}
export type PluginConnector = () => Promise<PluginEndpoint> | PluginEndpoint;

export interface SupervisorOptions {
  readonly connect: PluginConnector;
  readonly handlers: ConnectionOptions["handlers"];
  readonly onNotify: ConnectionOptions["onNotify"];
  /** Sets up a new connection before any other call. The first result is returned by `start`. */
  readonly setup: (link: PluginConnection) => Promise<unknown>;
  /** Called when a connection has ended, with the reason and the backoff. */
  readonly onExit: (why: string, pauseMs: number) => void;
}

export class PluginSupervisor {
  readonly #options: SupervisorOptions;
  #connection: PluginConnection | undefined;
  #connecting: Promise<PluginConnection> | undefined;
  #endpoint: PluginEndpoint | undefined;
  #failures = 0;
  #backoffUntil = 0;
  #waiting = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #outage: PluginOutage | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /**
   * Connects for the first time and returns the result of the setup. Rejects if the plugin is
   * unavailable.
   */
  async start(): Promise<unknown> {
    let setupResult: unknown;
    await this.#startAndSetUp((setup) => (setupResult = setup));
    return setupResult;
  }

  /** Set from the end of one connection until the next connection is ready. */
  get outage(): PluginOutage | undefined {
    return this.#outage;
  }

  connection(): PluginConnection | Promise<PluginConnection> {
    if (this.#connection && !this.#connection.isClosed) return this.#connection;
    if (this.#closed) return Promise.reject(new PluginFailure("The plugin has exited."));
    if (!this.#connecting && this.#backoffUntil - performance.now() > MAX_WAIT_MS)
      return Promise.reject(
        new PluginFailure("The plugin has exited and will be restarted after a delay."),
      );
    if (this.#waiting >= MAX_WAITING)
      return Promise.reject(
        new PluginFailure("The plugin has exited, and too many requests are waiting for it."),
      );
    return this.#connect();
  }

  /** Notifies the plugin of the shutdown, waits up to 1 s, and ends it. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    const link = this.#connection;
    const reached = this.#endpoint;
    if (link && !link.isClosed) {
      await Promise.race([link.call("end", {}).catch(() => {}), delay(1_000)]);
      link.close("its config generation ended");
    }
    reached?.kill();
    await reached?.exited;
  }

  async #connect(): Promise<PluginConnection> {
    this.#waiting++;
    try {
      return await (this.#connecting ??= this.#reconnect());
    } finally {
      this.#waiting--;
    }
  }

  async #reconnect(): Promise<PluginConnection> {
    try {
      const pause = this.#backoffUntil - performance.now();
      if (pause > 0) await delay(pause);
      if (this.#closed) throw new PluginFailure("The plugin has exited.");
      return await this.#startAndSetUp(() => {});
    } finally {
      this.#connecting = undefined;
    }
  }

  async #startAndSetUp(made: (setup: unknown) => void): Promise<PluginConnection> {
    const { connect, handlers, onNotify, setup } = this.#options;
    const began = performance.now();
    let reached: PluginEndpoint;
    try {
      reached = await connect();
    } catch (problem) {
      this.#onExit(String((problem as Error).message), began);
      throw problem;
    }
    this.#endpoint = reached;
    let link: PluginConnection | undefined;
    link = new PluginConnection({
      stream: reached.stream,
      handlers,
      onNotify,
      onClose: (why) => {
        reached.kill();
        if (this.#connection === link) this.#connection = undefined;
        if (!reached.exited) return this.#onExit(why, began);
        void reached.exited.then((how) => this.#onExit(`${why} (${how})`, began));
      },
    });
    try {
      made(await withSetupTimeout(setup(link), link));
      if (this.#closed) throw new PluginFailure("The plugin has exited.");
      this.#outage = undefined;
      return (this.#connection = link);
    } catch (problem) {
      link.close("its setup failed");
      throw problem;
    }
  }

  /** Schedules a restart after the backoff, even if no call needs the plugin. */
  #onExit(why: string, began: number): void {
    if (this.#closed) return;
    const now = performance.now();
    this.#failures = now - began > HEALTHY_AFTER_MS ? 1 : this.#failures + 1;
    const pause = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#failures - 1));
    this.#backoffUntil = now + pause;
    const at = wallClock();
    this.#outage = { since: this.#outage?.since ?? at, reason: why, retryAt: at + pause };
    this.#options.onExit(why, pause);
    this.#timer = setTimeout(() => {
      const coming = this.connection();
      if ("then" in coming) coming.catch(() => {});
    }, pause);
    this.#timer.unref();
  }
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function withSetupTimeout(
  work: Promise<unknown>,
  connection: PluginConnection,
): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new PluginFailure(`The plugin was not set up within ${SETUP_TIMEOUT_MS / 1_000} s.`));
      connection.close("its setup took too long");
    }, SETUP_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Connects to a plugin that another program runs. Closing only disconnects from its socket. */
export const socketConnector =
  (path: string): PluginConnector =>
  () =>
    new Promise((resolve, reject) => {
      const stream = createConnection({ path });
      stream.once("error", (problem: NodeJS.ErrnoException) =>
        reject(new PluginFailure(`Cannot connect to ${path}: ${problem.code}.`)),
      );
      stream.once("connect", () => {
        stream.unref();
        resolve({ stream, kill: () => void stream.destroy() });
      });
    });
