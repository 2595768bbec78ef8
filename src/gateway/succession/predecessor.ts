// The gateway before, from the side of the one that takes its place: it hands over the store, and from then on it is a guest that
// settles here what it still has open, like a worker.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import type { Notice } from "../../plugin/notice.ts";
import type { TurnedAway } from "../../plugin/observer.ts";
import type { HeardRequest } from "../../walk/generation.ts";
import type { Status } from "../types.ts";
import type { Services } from "../services/services.ts";
import { carrying } from "../workers/carrier.ts";
import type { Told } from "../workers/commands.ts";
import { createHolds } from "../workers/holds.ts";
import { READS } from "../services/store-questions.ts";
import { lending } from "../workers/lent-store.ts";
import { type Answers, type Channel, createLink, type Link } from "../workers/link.ts";
import { leftOpen } from "./left-open.ts";
import type { Estate, SuccessorAsks } from "./said.ts";

const WORD_MS = 10_000;
const READING_MS = 1_000;

/** The store's questions. */
const STORE = ["apply", ...READS] as const;
/** What observers are told. */
const OBSERVED = ["seen", "turnedAway", "told", "over"] as const;

type GuestChannel = Channel & { disconnect?(): void };
type Host = Pick<Services, "store" | "reports" | "writes" | "ledger" | "observing" | "log">;

export class Predecessor {
  /** Its process. */
  readonly pid: number;
  readonly #channel: GuestChannel;
  readonly #link: Link;
  readonly #holding = Promise.withResolvers<Answers>();
  readonly #over = Promise.withResolvers<void>();
  #estate: Estate | undefined;
  #takenAt = 0;
  #gone = false;
  /** It has said itself that nothing of it is left. */
  #ended = false;

  constructor(channel: GuestChannel, pid: number) {
    this.pid = pid;
    this.#channel = channel;
    // What is said before it can be answered waits.
    const answer =
      (name: string) =>
      async (...args: never[]) =>
        (await this.#holding.promise)[name]!(...args);
    this.#link = createLink(
      channel,
      Object.fromEntries([...STORE, ...OBSERVED].map((name) => [name, answer(name)])),
    );
    channel.once("disconnect", () => (this.#gone = true));
  }

  /** Everything but the store is in order. */
  async take(wanted: Parameters<SuccessorAsks["take"]>[0]): Promise<Estate> {
    this.#estate = await this.#link.ask<Estate>("take", wanted);
    this.#takenAt = wallClock();
    return this.#estate;
  }

  /** The store is open here, and observers are there: from now on it is a guest. */
  async holding(host: Host): Promise<void> {
    const { store, reports, observing, log } = host;
    const holds = createHolds(carrying(host.writes));
    this.#holding.resolve({
      ...lending(store, reports, holds.apply),
      seen: (heard: readonly HeardRequest[]) => heard.forEach((each) => observing.seen(each)),
      turnedAway: (refused: readonly TurnedAway[]) =>
        refused.forEach((each) => observing.turnedAway(each)),
      told: (notice: Notice) => observing.told(notice, this),
      over: () => void (this.#ended = true),
    });
    const left = async () => {
      observing.gone(this);
      if (!this.#ended) await this.#settle(host, await holds.left(wallClock()));
      else log.info({ before: this.pid }, "the gateway before has ended");
      this.#over.resolve();
    };
    this.#channel.once("disconnect", () => void left());
    await this.#link.ask("holding");
    if (this.#gone) void left();
  }

  /** Clients are served here. */
  async serving(): Promise<void> {
    await this.#link.ask("serving");
  }

  /** Resolves when nothing is left of it, and at the latest then. */
  async over(withinMs: number): Promise<void> {
    if (this.#estate)
      await Promise.race([this.#over.promise, sleep(withinMs, undefined, { ref: false })]);
  }

  /** Itself, and what it has under way; undefined: it is gone, or says nothing. */
  async reading(): Promise<Status["before"]> {
    if (this.#gone) return undefined;
    const silent = sleep(READING_MS, undefined, { ref: false });
    const inFlight = await Promise.race([
      this.#link.ask<number>("busy").catch(() => undefined),
      silent,
    ]);
    return inFlight === undefined ? undefined : { pid: this.pid, inFlight };
  }

  /** What all processes must know. One that does not say that it does might go on with what is not so any more: it hears nothing from here. */
  async tell(name: Told, ...args: readonly unknown[]): Promise<void> {
    if (this.#gone || !this.#estate) return;
    const late = sleep(WORD_MS, "late", { ref: false });
    const told = this.#link.ask(name, ...args).catch(() => "late");
    if ((await Promise.race([told, late])) === "late" && !this.#gone) this.#channel.disconnect?.();
  }

  async #settle(
    { store, ledger, log }: Host,
    later: Awaited<ReturnType<ReturnType<typeof createHolds>["left"]>>,
  ): Promise<void> {
    const { instance, since } = this.#estate!;
    // A store that both have open knows by itself of the dead.
    if (instance === undefined) return;
    const open = await leftOpen(store, { since, until: this.#takenAt, now: wallClock() }).catch(
      (error: unknown) => {
        log.error({ err: error }, "what the gateway before had open cannot be read");
        return [];
      },
    );
    const calls = new Map([...open, ...later].map((call) => [call.attempt, call]));
    log.error(
      { before: this.pid, calls: calls.size },
      "the gateway before ended before its requests; what it had open is settled as estimated",
    );
    for (const call of calls.values())
      ledger.settle(call).catch((error: unknown) => {
        log.error({ err: error, attempt: call.attempt }, "a call could not be settled");
      });
  }
}
