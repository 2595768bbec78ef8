// Commands about finished requests: one request by its ID, the latest requests, and statistics. To
// follow new requests, a client polls. Each response is a page that starts at the end of the
// previous one, and the server waits briefly if there are no new requests. No state is therefore
// kept per reader, and a slow reader receives the number of missed entries.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { RequestRecord, RejectedRequest } from "../../plugin/observer.ts";
import type { GatewayStats, CooldownState } from "../../plugin/gateway-stats.ts";
import type { Store } from "../../plugin/store/store.ts";
import { type ChargedAttempt, readCharges } from "../../runtime/requests/request-charges.ts";
import { KeyNames } from "../../runtime/requests/key-names.ts";
import type { RequestHistory } from "../../runtime/requests/request-history.ts";
import type { LiveRequest } from "../../runtime/requests/in-flight-requests.ts";
import {
  type FinishedRequest,
  isRoutedRequest,
  type RingView,
} from "../../runtime/requests/request-ring.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import type { RequestStats, StatsPage, StatsRow } from "../../runtime/requests/request-stats.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { createRequestFilter, isOfAccount, keyOf } from "./request-filter.ts";
import { createSearchCommand } from "./request-search.ts";
import type { InputOf } from "../schema/command-specs.ts";

/** A request as observers received it. `keyName`: current name of the key. */
export type ShownRequest =
  | (RequestRecord & { readonly keyName: string | undefined })
  | RejectedRequest;

/** A request that matches an ID. */
export interface FoundRequest {
  readonly id: string;
  /**
   * Undefined if the request is no longer in the history. Only the ledger rows are then available.
   */
  readonly record: ShownRequest | undefined;
  readonly charges: readonly (ChargedAttempt & { readonly keyName: string | undefined })[];
}

export interface FoundRequests {
  /** Newest first. A client may use the same ID for several requests. */
  readonly requests: readonly FoundRequest[];
  /** Start time of the history. Undefined if no gateway runs and only the ledger was read. */
  readonly rememberedSince: number | undefined;
}

export interface RequestPage {
  readonly items: readonly ShownRequest[];
  readonly next: number;
  readonly missed: number;
  readonly rememberedSince: number;
}

export interface RecentStats {
  readonly at: number;
  readonly windowMs: number;
  readonly countedSince: number;
  readonly inFlight: number;
  /** Number of open WebSockets. */
  readonly webSockets: number;
  readonly cooldowns: readonly CooldownState[];
  readonly ledger: GatewayStats["ledger"];
  readonly total: StatsRow | undefined;
  readonly models: readonly StatsRow[];
  readonly keys: readonly (StatsRow & { readonly keyName: string | undefined })[];
  readonly frontends: readonly StatsRow[];
}

/**
 * Maximum delay, in milliseconds, until a finished request arrives in the history. It passes
 * through one batch in its process and one batch in this process.
 */
const MAX_DELIVERY_MS = 1_000;
const MAX_SAME_ID = 20;
const MAX_PAGE = 500;
const MAX_WAITING = 64;

/** Open requests. */
export interface LiveRequests {
  readonly items: readonly (LiveRequest & { readonly keyName: string | undefined })[];
  /** Number of open requests. */
  readonly total: number;
}

export interface RequestCommandsOptions {
  readonly store: Pick<Store, "listEntries" | "findPrice" | "listKeys">;
  /** Set if the gateway runs. */
  readonly running?: {
    readonly history: RequestHistory;
    readonly stats: () => Promise<GatewayStats>;
    /** Returns the open requests of all processes. */
    readonly inFlightRequests: () => Promise<readonly LiveRequest[]>;
  };
}

/** Creates the command that also works while no gateway is running. */
export function createShowCommand({ store, running }: RequestCommandsOptions) {
  const names = new KeyNames(store);
  return withInputChecks({
    "requests.show": async ({ id, account }, giver): Promise<FoundRequests> => {
      const ring = running?.history.recentRequests;
      // The ID of an attempt also identifies its request.
      const own = ATTEMPT_ID.test(id) ? id.slice(0, id.lastIndexOf(".")) : id;
      const remembered = () =>
        ring?.find(
          (over) => (over.id === own || matchesId(over, id)) && isOfAccount(over, account),
          MAX_SAME_ID,
        ) ?? [];
      let found = remembered();
      const charged = found.length > 0 ? [] : await chargesOf(store, own, account);
      if (found.length === 0 && ring && charged.every(mayBeUndelivered)) {
        const deadline = wallClock() + MAX_DELIVERY_MS;
        while (found.length === 0 && wallClock() < deadline) {
          await Promise.race([
            ring.whenAdded(),
            sleep(deadline - wallClock(), undefined, { ref: false }),
          ]);
          found = remembered();
        }
      }
      const called = await names.readAll();
      const shown = (charges: readonly ChargedAttempt[]) =>
        charges.map((charge) => ({ ...charge, keyName: called.get(charge.key) }));
      const since = ring?.within(giver?.account).since;
      const requests: FoundRequest[] = await Promise.all(
        found.map(async (over) => ({
          id: over.id,
          record: withKeyName(over, called),
          charges: isRoutedRequest(over) ? shown(await readCharges(store, over.id)) : [],
        })),
      );
      if (requests.length === 0 && charged.length > 0)
        requests.push({ id: own, record: undefined, charges: shown(charged) });
      return requests.length > 0 ? { requests, rememberedSince: since } : failNotFound(id, since);
    },
  });
}

/** Returns the attempts of a request. A request of another account is treated as nonexistent. */
async function chargesOf(
  store: RequestCommandsOptions["store"],
  request: string,
  account: string | undefined,
): Promise<readonly ChargedAttempt[]> {
  const charges = await readCharges(store, request);
  return charges.filter((each) => account === undefined || isWithinAccount(each.account, account));
}

export function createRequestCommands(
  options: RequestCommandsOptions & Required<Pick<RequestCommandsOptions, "running">>,
) {
  const { store } = options;
  const { history, stats: readings, inFlightRequests } = options.running;
  const { recentRequests, requestStats } = history;
  const names = new KeyNames(store);
  let waiting = 0;

  /**
   * Waits until there is a new request for this reader, or until the time limit has passed. Returns
   * immediately if too many readers are waiting.
   */
  async function news(view: () => RingView, after: number | undefined, ms: number): Promise<void> {
    if (ms === 0 || waiting >= MAX_WAITING) return;
    const known = after ?? view().count;
    const end = sleep(ms, "over", { ref: false });
    waiting++;
    try {
      while (
        view().count === known &&
        (await Promise.race([recentRequests.whenAdded(), end])) !== "over"
      );
    } finally {
      waiting--;
    }
  }

  return {
    ...createShowCommand(options),
    ...createSearchCommand(store),
    ...withInputChecks({
      "requests.list": async (input, giver): Promise<RequestPage> => {
        const view = () => recentRequests.within(giver?.account);
        const fits = await createRequestFilter(input, (idOrName) =>
          names.resolveId(
            idOrName,
            (id) => recentRequests.find((over) => keyOf(over) === id, 1).length > 0,
          ),
        );
        const { after, last, limit, waitMs = 0 } = input;
        await news(view, after, waitMs);
        const { count, size, since } = view();
        const start = after ?? Math.max(count - (last ?? MAX_PAGE), count - size);
        const page = view().read(start, fits, Math.min(limit ?? 100, MAX_PAGE));
        const called = await names.readAll();
        return {
          items: page.items.map(({ request }) => withKeyName(request, called)),
          next: page.next,
          missed: page.missedCount,
          rememberedSince: since,
        };
      },
      "requests.live": async (input) =>
        toLiveRequests(input, await inFlightRequests(), await names.readAll()),
      "requests.stats": async ({ windowMs = 60_000 }): Promise<RecentStats> => {
        const { at, inFlight, webSocketsByFrontend, cooldowns, ledger } = await readings();
        const called = await names.readAll();
        const [all] = requestStats.recentRows("all", windowMs);
        return {
          at,
          windowMs,
          countedSince: requestStats.countedSince,
          inFlight,
          webSockets: Object.values(webSocketsByFrontend).reduce((sum, one) => sum + one, 0),
          cooldowns,
          ledger,
          total: all,
          models: requestStats.recentRows("model", windowMs),
          keys: requestStats
            .recentRows("key", windowMs)
            .map((row) => ({ ...row, keyName: called.get(row.name) })),
          frontends: requestStats.recentRows("frontend", windowMs),
        };
      },
      "requests.series": async (input): Promise<StatsPage> =>
        requestStats.readSeries(toSeriesQuery(input)),
    }),
  };
}

function toLiveRequests(
  { account, limit = 100 }: InputOf<"requests.live">,
  all: readonly LiveRequest[],
  called: ReadonlyMap<string, string | undefined>,
): LiveRequests {
  const its = all
    .filter((each) => account === undefined || isWithinAccount(each.account, account))
    .toSorted((a, b) => a.startedAt - b.startedAt);
  const shown = its.slice(0, Math.min(limit, MAX_PAGE));
  return {
    items: shown.map((each) => ({ ...each, keyName: each.key && called.get(each.key) })),
    total: its.length,
  };
}

function toSeriesQuery(
  options: InputOf<"requests.series">,
): Parameters<RequestStats["readSeries"]>[0] {
  const { from = 0, to = wallClock() + 1, step = "minute", by = "all", most = 10 } = options;
  const { account, provider } = options;
  const wrong =
    account !== undefined && by !== "all" && by !== "account"
      ? "Statistics of one account can be grouped only by all or account."
      : account !== undefined && provider !== undefined
        ? "Statistics of one account cannot be limited to a provider."
        : provider !== undefined && by !== "all" && by !== "model"
          ? "Statistics of one provider can be grouped only by all or model."
          : undefined;
  if (wrong !== undefined) fail("invalid", wrong, { code: "bad_input", param: "/by" });
  return { from, to, step, by, most, account, provider };
}

const ATTEMPT_ID = /^[0-9A-Za-z]{12,}\.\d{1,2}$/;

/** Whether the request is open, or was settled so recently that its record may not have arrived. */
const mayBeUndelivered = ({ settledAt }: ChargedAttempt): boolean =>
  settledAt === undefined || wallClock() - settledAt < 2_000;

const matchesId = (over: FinishedRequest, id: string): boolean =>
  over.id === id || (isRoutedRequest(over) && over.clientRequestId === id);

const withKeyName = (
  over: FinishedRequest,
  names: ReadonlyMap<string, string | undefined>,
): ShownRequest =>
  isRoutedRequest(over)
    ? { ...over, keyName: over.key === undefined ? undefined : names.get(over.key) }
    : over;

const failNotFound = (id: string, since: number | undefined): never =>
  fail(
    "not_found",
    since === undefined
      ? `Request "${id}" not found in the ledger. Rejected requests are kept only in the request history of a running gateway.`
      : `Request "${id}" not found. The request history starts at ${new Date(since).toISOString()}.`,
    { code: "no_such_request", ...(since !== undefined && { details: { since } }) },
  );
