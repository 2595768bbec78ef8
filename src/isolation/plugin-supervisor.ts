// Keeps a plugin outside alive: connected and set up, and again after each end, with a pause that grows. What is asked of it meanwhile
// waits for the next one, a little.
import { createConnection } from "node:net";
import type { Duplex } from "node:stream";
import type { PluginOutage } from "../lib/plugin-outage.ts";
import { wallClock } from "../lib/time/wall-clock.ts";
import { PluginConnection, PluginFailure, type ConnectionOptions } from "./plugin-connection.ts";

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** One that has lasted so long begins anew. */
const HEALTHY_AFTER_MS = 30_000;
/** To be connected and set up. */
const SETUP_TIMEOUT_MS = 29_000;
/** How many may wait for one that comes back. */
const MAX_WAITING = 1_000;
/** A pause that is longer is not waited for. */
const MAX_WAIT_MS = 1_000;

/** A way to a new one: a process that is started, a socket that is dialled. */
export interface PluginEndpoint {
  readonly stream: Duplex;
  kill(): void;
  /** What became of it, where that can be known. */
  readonly exited?: Promise<string>;
}
export type PluginConnector = () => Promise<PluginEndpoint> | PluginEndpoint;

export interface SupervisorOptions {
  readonly connect: PluginConnector;
  readonly handlers: ConnectionOptions["handlers"];
  readonly onNotify: ConnectionOptions["onNotify"];
  /** Before anything else is asked of a new one. What it resolves to is `first`'s. */
  readonly setup: (link: PluginConnection) => Promise<unknown>;
  /** One has ended, with the reason. */
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

  /** The first one: what its setup says. Rejects where it cannot be had. */
  async start(): Promise<unknown> {
    let setupResult: unknown;
    await this.#startAndSetUp((setup) => (setupResult = setup));
    return setupResult;
  }

  /** Set from the end of one connection until the next one is set up. */
  get outage(): PluginOutage | undefined {
    return this.#outage;
  }

  connection(): PluginConnection | Promise<PluginConnection> {
    if (this.#connection && !this.#connection.isClosed) return this.#connection;
    if (this.#closed) return Promise.reject(new PluginFailure("The plugin has ended."));
    if (!this.#connecting && this.#backoffUntil - performance.now() > MAX_WAIT_MS)
      return Promise.reject(
        new PluginFailure("The plugin is gone, and rests before it is begun again."),
      );
    if (this.#waiting >= MAX_WAITING)
      return Promise.reject(new PluginFailure("The plugin is gone, and too many wait for it."));
    return this.#connect();
  }

  /** Told that it is over, given a moment, and ended. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    const link = this.#connection;
    const reached = this.#endpoint;
    if (link && !link.isClosed) {
      await Promise.race([link.call("end", {}).catch(() => {}), delay(1_000)]);
      link.close("the generation has ended");
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
      if (this.#closed) throw new PluginFailure("The plugin has ended.");
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
      if (this.#closed) throw new PluginFailure("The plugin has ended.");
      this.#outage = undefined;
      return (this.#connection = link);
    } catch (problem) {
      link.close("its setup failed");
      throw problem;
    }
  }

  /** It is begun again at once, or after a pause; not only when the next one asks for it. */
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
      reject(new PluginFailure(`It was not set up within ${SETUP_TIMEOUT_MS / 1_000} s.`));
      connection.close("its setup took too long");
    }, SETUP_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A plugin that others run: it is met at its socket, and left there. */
export const socketConnector =
  (path: string): PluginConnector =>
  () =>
    new Promise((resolve, reject) => {
      const stream = createConnection({ path });
      stream.once("error", (problem: NodeJS.ErrnoException) =>
        reject(new PluginFailure(`Nothing answers at ${path}: ${problem.code}.`)),
      );
      stream.once("connect", () => {
        stream.unref();
        resolve({ stream, kill: () => void stream.destroy() });
      });
    });
