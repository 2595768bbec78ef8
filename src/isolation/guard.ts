// Keeps a plugin outside alive: connected and set up, and again after each end, with a pause that grows. What is asked of it meanwhile
// waits for the next one, a little.
import { createConnection } from "node:net";
import type { Duplex } from "node:stream";
import type { PluginOutage } from "../lib/outage.ts";
import { wallClock } from "../lib/wall-clock.ts";
import { OutsideLink, PluginFailure, type LinkOptions } from "./link.ts";

const FIRST_MS = 100;
const MOST_MS = 30_000;
/** One that has lasted so long begins anew. */
const WELL_MS = 30_000;
/** To be connected and set up. */
const SETUP_MS = 29_000;
/** How many may wait for one that comes back. */
const MOST_WAITING = 1_000;
/** A pause that is longer is not waited for. */
const WAIT_MS = 1_000;

/** A way to a new one: a process that is started, a socket that is dialled. */
export interface Reached {
  readonly stream: Duplex;
  kill(): void;
  /** What became of it, where that can be known. */
  readonly over?: Promise<string>;
}
export type WayOutside = () => Promise<Reached> | Reached;

export interface GuardOptions {
  readonly reach: WayOutside;
  readonly answers: LinkOptions["answers"];
  readonly heard: LinkOptions["heard"];
  /** Before anything else is asked of a new one. What it resolves to is `first`'s. */
  readonly setup: (link: OutsideLink) => Promise<unknown>;
  /** One has ended, with the reason. */
  readonly lost: (why: string, pauseMs: number) => void;
}

export class KeptOutside {
  readonly #of: GuardOptions;
  #link: OutsideLink | undefined;
  #coming: Promise<OutsideLink> | undefined;
  #reached: Reached | undefined;
  #failures = 0;
  #until = 0;
  #waiting = 0;
  #ended = false;
  #timer: NodeJS.Timeout | undefined;
  #outage: PluginOutage | undefined;

  constructor(of: GuardOptions) {
    this.#of = of;
  }

  /** The first one: what its setup says. Rejects where it cannot be had. */
  async first(): Promise<unknown> {
    let said: unknown;
    await this.#begin((setup) => (said = setup));
    return said;
  }

  /** Set from the end of one connection until the next one is set up. */
  get outage(): PluginOutage | undefined {
    return this.#outage;
  }

  link(): OutsideLink | Promise<OutsideLink> {
    if (this.#link && !this.#link.over) return this.#link;
    if (this.#ended) return Promise.reject(new PluginFailure("The plugin has ended."));
    if (!this.#coming && this.#until - performance.now() > WAIT_MS)
      return Promise.reject(
        new PluginFailure("The plugin is gone, and rests before it is begun again."),
      );
    if (this.#waiting >= MOST_WAITING)
      return Promise.reject(new PluginFailure("The plugin is gone, and too many wait for it."));
    return this.#come();
  }

  /** Told that it is over, given a moment, and ended. */
  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    const link = this.#link;
    const reached = this.#reached;
    if (link && !link.over) {
      await Promise.race([link.ask("end", {}).catch(() => {}), after(1_000)]);
      link.end("the generation has ended");
    }
    reached?.kill();
    await reached?.over;
  }

  async #come(): Promise<OutsideLink> {
    this.#waiting++;
    try {
      return await (this.#coming ??= this.#again());
    } finally {
      this.#waiting--;
    }
  }

  async #again(): Promise<OutsideLink> {
    try {
      const pause = this.#until - performance.now();
      if (pause > 0) await after(pause);
      if (this.#ended) throw new PluginFailure("The plugin has ended.");
      return await this.#begin(() => {});
    } finally {
      this.#coming = undefined;
    }
  }

  async #begin(made: (setup: unknown) => void): Promise<OutsideLink> {
    const { reach, answers, heard, setup } = this.#of;
    const began = performance.now();
    let reached: Reached;
    try {
      reached = await reach();
    } catch (problem) {
      this.#gone(String((problem as Error).message), began);
      throw problem;
    }
    this.#reached = reached;
    let link: OutsideLink | undefined;
    link = new OutsideLink({
      stream: reached.stream,
      answers,
      heard,
      over: (why) => {
        reached.kill();
        if (this.#link === link) this.#link = undefined;
        if (!reached.over) return this.#gone(why, began);
        void reached.over.then((how) => this.#gone(`${why} (${how})`, began));
      },
    });
    try {
      made(await inTime(setup(link), link));
      if (this.#ended) throw new PluginFailure("The plugin has ended.");
      this.#outage = undefined;
      return (this.#link = link);
    } catch (problem) {
      link.end("its setup failed");
      throw problem;
    }
  }

  /** It is begun again at once, or after a pause; not only when the next one asks for it. */
  #gone(why: string, began: number): void {
    if (this.#ended) return;
    const now = performance.now();
    this.#failures = now - began > WELL_MS ? 1 : this.#failures + 1;
    const pause = Math.min(MOST_MS, FIRST_MS * 2 ** (this.#failures - 1));
    this.#until = now + pause;
    const at = wallClock();
    this.#outage = { since: this.#outage?.since ?? at, why, retryAt: at + pause };
    this.#of.lost(why, pause);
    this.#timer = setTimeout(() => {
      const coming = this.link();
      if ("then" in coming) coming.catch(() => {});
    }, pause);
    this.#timer.unref();
  }
}

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function inTime(work: Promise<unknown>, link: OutsideLink): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new PluginFailure(`It was not set up within ${SETUP_MS / 1_000} s.`));
      link.end("its setup took too long");
    }, SETUP_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A plugin that others run: it is met at its socket, and left there. */
export const atSocket =
  (path: string): WayOutside =>
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
