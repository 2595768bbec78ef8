// Requests that are over, as an operator asks about them: one by its id, the last ones as they come, and counts and times. A
// command that follows is asked again and again: each answer is a page from where the last one ended, and waits a while where there
// is nothing new. So nothing is kept for a reader, and one that is slow is overtaken and told so.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { RequestRecord, TurnedAway } from "../../plugin/observer.ts";
import type { Readings, RestingReading } from "../../plugin/readings.ts";
import type { Store } from "../../plugin/store.ts";
import { type BilledAttempt, billedOf } from "../requests/billed.ts";
import { KeyNames } from "../requests/key-names.ts";
import type { Remembered } from "../requests/remembered.ts";
import type { LiveRequest } from "../requests/under-way.ts";
import { type Over, reachedFrontend, type RingView } from "../requests/ring.ts";
import { standsIn } from "../requests/series-choice.ts";
import type { Stats, StatsPage, StatsRow } from "../requests/stats.ts";
import { answering } from "./input.ts";
import { filterOf, isOfAccount, keyOf } from "./request-filter.ts";
import { searchCommand } from "./request-search.ts";
import type { InputOf } from "./table.ts";

/** As it was told to observers. `keyName`: as the key is called now. */
export type ShownRequest = (RequestRecord & { readonly keyName: string | undefined }) | TurnedAway;

/** One request that is meant by an id. */
export interface FoundRequest {
  readonly id: string;
  /** Undefined: it is not remembered any more, and what the ledger says is all. */
  readonly seen: ShownRequest | undefined;
  readonly charges: readonly (BilledAttempt & { readonly keyName: string | undefined })[];
}

export interface FoundRequests {
  /** The newest first; a client may use an id of its own again. */
  readonly requests: readonly FoundRequest[];
  /** From when on requests are remembered; undefined: no gateway runs, and only the ledger was asked. */
  readonly since: number | undefined;
}

export interface RequestPage {
  readonly items: readonly ShownRequest[];
  readonly next: number;
  readonly missed: number;
  readonly since: number;
}

export interface RecentStats {
  readonly at: number;
  readonly windowMs: number;
  readonly since: number;
  readonly inFlight: number;
  readonly resting: readonly RestingReading[];
  readonly ledger: Readings["ledger"];
  readonly all: StatsRow | undefined;
  readonly models: readonly StatsRow[];
  readonly keys: readonly (StatsRow & { readonly keyName: string | undefined })[];
  readonly frontends: readonly StatsRow[];
}

/** What was over a moment ago is on its way here: a batch in its process, and one in this. */
const ON_ITS_WAY_MS = 1_000;
const SAME_ID = 20;
const PAGE = 500;
const WAITING = 64;

/** Requests that are not over. */
export interface LiveRequests {
  readonly items: readonly (LiveRequest & { readonly keyName: string | undefined })[];
  /** How many there are. */
  readonly all: number;
}

export interface RequestCommandsOf {
  readonly store: Pick<Store, "entries" | "price" | "keys">;
  /** In the gateway that runs. */
  readonly live?: {
    readonly remembered: Remembered;
    readonly readings: () => Promise<Readings>;
    /** Of all processes. */
    readonly underWay: () => Promise<readonly LiveRequest[]>;
  };
}

/** What the files alone can say too. */
export function foundCommand({ store, live }: RequestCommandsOf) {
  const names = new KeyNames(store);
  return answering({
    "requests.show": async ({ id, account }, giver): Promise<FoundRequests> => {
      const ring = live?.remembered.ring;
      // What is asked by its attempt is meant too.
      const own = ATTEMPT.test(id) ? id.slice(0, id.lastIndexOf(".")) : id;
      const remembered = () =>
        ring?.find(
          (over) => (over.id === own || isMeant(over, id)) && isOfAccount(over, account),
          SAME_ID,
        ) ?? [];
      let found = remembered();
      const charged = found.length > 0 ? [] : await chargesOf(store, own, account);
      if (found.length === 0 && ring && charged.every(isYoung)) {
        const late = wallClock() + ON_ITS_WAY_MS;
        while (found.length === 0 && wallClock() < late) {
          await Promise.race([ring.grown(), sleep(late - wallClock(), undefined, { ref: false })]);
          found = remembered();
        }
      }
      const called = await names.all();
      const shown = (charges: readonly BilledAttempt[]) =>
        charges.map((charge) => ({ ...charge, keyName: called.get(charge.key) }));
      const since = ring?.within(giver?.within).since;
      const requests: FoundRequest[] = await Promise.all(
        found.map(async (over) => ({
          id: over.id,
          seen: named(over, called),
          charges: reachedFrontend(over) ? shown(await billedOf(store, over.id)) : [],
        })),
      );
      if (requests.length === 0 && charged.length > 0)
        requests.push({ id: own, seen: undefined, charges: shown(charged) });
      return requests.length > 0 ? { requests, since } : notFound(id, since);
    },
  });
}

/** Of a request of another account none, as of one that there is not. */
async function chargesOf(
  store: RequestCommandsOf["store"],
  request: string,
  account: string | undefined,
): Promise<readonly BilledAttempt[]> {
  const charges = await billedOf(store, request);
  return charges.filter((each) => account === undefined || standsIn(each.account, account));
}

export function requestCommands(of: RequestCommandsOf & Required<Pick<RequestCommandsOf, "live">>) {
  const { store } = of;
  const { remembered, readings, underWay } = of.live;
  const { ring, stats } = remembered;
  const names = new KeyNames(store);
  let waiting = 0;

  /** Until there is something new for this reader, or the time is over; not for more readers than there may be. */
  async function news(view: () => RingView, after: number | undefined, ms: number): Promise<void> {
    if (ms === 0 || waiting >= WAITING) return;
    const known = after ?? view().count;
    const end = sleep(ms, "over", { ref: false });
    waiting++;
    try {
      while (view().count === known && (await Promise.race([ring.grown(), end])) !== "over");
    } finally {
      waiting--;
    }
  }

  return {
    ...foundCommand(of),
    ...searchCommand(store),
    ...answering({
      "requests.list": async (input, giver): Promise<RequestPage> => {
        const view = () => ring.within(giver?.within);
        const fits = await filterOf(input, (said) =>
          names.idOf(said, (id) => ring.find((over) => keyOf(over) === id, 1).length > 0),
        );
        const { after, last, limit, waitMs = 0 } = input;
        await news(view, after, waitMs);
        const { count, size, since } = view();
        const start = after ?? Math.max(count - (last ?? PAGE), count - size);
        const page = view().read(start, fits, Math.min(limit ?? 100, PAGE));
        const called = await names.all();
        return {
          items: page.items.map(({ over }) => named(over, called)),
          next: page.next,
          missed: page.missed,
          since,
        };
      },
      "requests.live": async (input) => liveOf(input, await underWay(), await names.all()),
      "stats.recent": async ({ windowMs = 60_000 }): Promise<RecentStats> => {
        const { at, inFlight, resting, ledger } = await readings();
        const called = await names.all();
        const [all] = stats.recent("all", windowMs);
        return {
          at,
          windowMs,
          since: stats.since,
          inFlight,
          resting,
          ledger,
          all,
          models: stats.recent("model", windowMs),
          keys: stats
            .recent("key", windowMs)
            .map((row) => ({ ...row, keyName: called.get(row.name) })),
          frontends: stats.recent("frontend", windowMs),
        };
      },
      "stats.series": async (input): Promise<StatsPage> => stats.series(seriesOf(input)),
    }),
  };
}

function liveOf(
  { account, limit = 100 }: InputOf<"requests.live">,
  all: readonly LiveRequest[],
  called: ReadonlyMap<string, string | undefined>,
): LiveRequests {
  const its = all
    .filter((each) => account === undefined || standsIn(each.account, account))
    .toSorted((a, b) => a.at - b.at);
  const shown = its.slice(0, Math.min(limit, PAGE));
  return {
    items: shown.map((each) => ({ ...each, keyName: each.key && called.get(each.key) })),
    all: its.length,
  };
}

function seriesOf(of: InputOf<"stats.series">): Parameters<Stats["series"]>[0] {
  const { from = 0, to = wallClock() + 1, step = "minute", by = "all", most = 10 } = of;
  const { account, provider } = of;
  const wrong =
    account !== undefined && by !== "all" && by !== "account"
      ? "Of one account there are counts by all and by account."
      : account !== undefined && provider !== undefined
        ? "Counts of one account are not kept by provider."
        : provider !== undefined && by !== "all" && by !== "model"
          ? "Counts of one provider are kept by all and by model."
          : undefined;
  if (wrong !== undefined) fail("invalid", wrong, { code: "bad_input", param: "/by" });
  return { from, to, step, by, most, account, provider };
}

const ATTEMPT = /^[0-9A-Za-z]{12,}\.\d{1,2}$/;

/** It is open, or was closed so lately that the gateway may not have heard of it. */
const isYoung = ({ settledAt }: BilledAttempt): boolean =>
  settledAt === undefined || wallClock() - settledAt < 2_000;

const isMeant = (over: Over, id: string): boolean =>
  over.id === id || (reachedFrontend(over) && over.clientRequestId === id);

const named = (over: Over, names: ReadonlyMap<string, string | undefined>): ShownRequest =>
  reachedFrontend(over)
    ? { ...over, keyName: over.key === undefined ? undefined : names.get(over.key) }
    : over;

const notFound = (id: string, since: number | undefined): never =>
  fail(
    "not_found",
    since === undefined
      ? `The ledger has no request "${id}". What was refused is not in it: a running gateway remembers that for a while.`
      : `There is no request "${id}": the ledger has none, and requests are remembered since ${new Date(since).toISOString()}.`,
    { code: "no_such_request", ...(since !== undefined && { details: { since } }) },
  );
