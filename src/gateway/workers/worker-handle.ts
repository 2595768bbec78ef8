// One worker as the primary sees it: a process, what it may ask, what it has open, and its end.
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { Notice } from "../../plugin/notice.ts";
import type { TurnedAway } from "../../plugin/observer.ts";
import type { Store } from "../../plugin/store.ts";
import type { HeardRequest } from "../../walk/generation.ts";
import type { ReadingSource } from "../readings/all.ts";
import type { LiveSource } from "../requests/under-way.ts";
import type { ClaimedRequest, ClaimOutcome, Claims } from "../../walk/claims.ts";
import type { Observing } from "../observers/audience.ts";
import { handAgain } from "./handover.ts";
import { createHolds, type Holds } from "./holds.ts";
import { createLink, type Channel } from "./link.ts";
import { lending } from "./lent-store.ts";
import type { WorkerCommands } from "./commands.ts";

/** A reading is of now, or it is the last one. */
const READING_MS = 1_000;

type Answer<N extends keyof WorkerCommands> = Awaited<ReturnType<WorkerCommands[N]>>;

export interface Member {
  /** Of this place among the workers; the process that takes over has it too. */
  readonly place: number;
  readonly pid: number;
  readonly since: number;
  readonly holds: Holds;
  /** Asks, and ends a worker that does not answer in time: it might go on with what is not wanted any more. */
  ask<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<Answer<N>>;
  /** Asks what may stay unanswered: then, or when it ends, it is undefined. */
  wonder<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<Answer<N> | undefined>;
  /** Its readings. */
  readonly source: ReadingSource & LiveSource;
  /** Without an answer, also before it serves. */
  tell<N extends "lists" | "health">(name: N, ...args: Parameters<WorkerCommands[N]>): void;
  kill(): void;
  /** How many connections are on their way to it. Those that wait for a worker do so while each has one. */
  handed(): number;
  /** Resolves, with how it ended, when it has and everything that it had sent is here. */
  readonly over: Promise<string>;
}

/** What the primary does for a worker. */
interface MemberOf {
  store: Store;
  reports: Pick<Store, "entries" | "totals">;
  apply: Store["apply"];
  /** It says that something is wrong with it: it goes on with what it has, and wants nothing new. */
  ailing: () => void;
  /** No row of it gets through to the store. */
  troubled: (why: string) => void;
  /** It does not answer, and is ended. */
  late: (asked: string, withinMs: number) => void;
  /** What it has to tell observers. */
  observing: Pick<Observing, "seen" | "turnedAway" | "told" | "gone">;
  /** Requests with an Idempotency-Key, of all processes. */
  claims: Claims;
  /** It asks on behalf of a plugin what that plugin's others know. */
  peers: (id: string, question: unknown, near?: boolean) => Promise<unknown>;
  /** The same, for what all processes are like. */
  readings: () => Promise<unknown>;
  /** Whether another one takes connections. */
  others: () => boolean;
}

export function spawn(place: number, of: MemberOf): Member {
  const forked = cluster.fork();
  const { process: child } = forked;
  // A connection cannot be handed to a worker that has just died; its end is told by itself.
  forked.on("error", () => {});
  const holds = createHolds(of.apply);
  const link = createLink(child as Channel, {
    ...lending(of.store, of.reports, holds.apply),
    ailing: of.ailing,
    troubled: of.troubled,
    peers: of.peers,
    readings: of.readings,
    claim: (claim: ClaimedRequest) => of.claims.begin(claim, child),
    claimOver: (claim: ClaimedRequest, outcome?: ClaimOutcome) => of.claims.end(claim, outcome),
    seen: (heard: readonly HeardRequest[]) =>
      heard.forEach((each) => of.observing.seen(each, place)),
    turnedAway: (refusals: readonly TurnedAway[]) =>
      refusals.forEach((each) => of.observing.turnedAway(each)),
    told: (notice: Notice) => of.observing.told(notice, child),
  });
  const wonder: Member["wonder"] = <N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ) =>
    Promise.race([
      link.ask<Answer<N>>(name, ...args).catch(() => undefined),
      sleep(withinMs, undefined, { ref: false }),
    ]);
  const over = ending(child);
  void over.then(() => {
    of.observing.gone(child);
    of.claims.gone(child);
  });
  return {
    place,
    pid: child.pid!,
    since: performance.now(),
    holds,
    async ask<N extends keyof WorkerCommands>(
      name: N,
      withinMs: number,
      ...args: Parameters<WorkerCommands[N]>
    ): Promise<Answer<N>> {
      const timer = setTimeout(() => {
        of.late(name, withinMs);
        child.kill("SIGKILL");
      }, withinMs);
      try {
        return await link.ask<Answer<N>>(name, ...args);
      } catch (error) {
        if (child.connected) throw error;
        throw new Error(`A worker has ended (${await over}).`, { cause: error });
      } finally {
        clearTimeout(timer);
      }
    },
    wonder,
    source: {
      ask: () => wonder("readings", READING_MS),
      underWay: () => wonder("underWay", READING_MS),
    },
    tell: link.tell,
    kill: () => void child.kill("SIGKILL"),
    handed: handAgain(child, of.others),
    over,
  };
}

const ending = async (child: ChildProcess): Promise<string> => {
  const left = new Promise<void>((resolve) => child.once("disconnect", resolve));
  const how = await new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    if (child.pid === undefined) child.once("error", (error) => resolve(error.message));
  });
  if (child.connected) await left;
  return how;
};
