// Lists problems on which an operator should act, most urgent first.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Limit, LimitUsage } from "../../plugin/store/limit.ts";
import type { QuarantinedHook } from "../../plugin/gateway-event.ts";
import type { CertificateStats, GatewayStats, CooldownState } from "../../plugin/gateway-stats.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";
import { isWithinAccount } from "../../runtime/requests/series-selection.ts";
import type { RequestStats } from "../../runtime/requests/request-stats.ts";
import type { GatewayStatus, UnreachablePlugin } from "../../runtime/gateway-api.ts";
import type { AccountTree } from "../access/account-tree.ts";
import { type ShownLimitUsage, toLimitUsage } from "../access/grants.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { KeyRepository } from "../access/key-repository.ts";

/** A limit that is used to 80% or more. */
interface FullLimit extends Omit<ShownLimitUsage, "scope" | "remaining"> {
  /** Owner of the limit, with its ID. */
  readonly subject: "key" | "account";
  readonly id: string;
  readonly name: string | undefined;
}

/** An item to act on. Times are in Unix milliseconds. */
export type AttentionItem = { readonly severity: "bad" | "warn" } & (
  | { readonly kind: "ledger"; readonly reason: string }
  /** The last reload was rejected. The previous config stays in use. */
  | {
      readonly kind: "reload";
      readonly at: number;
      readonly problems: number;
      readonly first: string | undefined;
    }
  | ({ readonly kind: "certificate" } & CertificateStats)
  | ({ readonly kind: "cooldown" } & Pick<
      CooldownState,
      "provider" | "credential" | "model" | "reason" | "until" | "rejectsRequests"
    >)
  | ({ readonly kind: "budget" } & FullLimit)
  /**
   * A model will be or was retired by its provider, and it was used in the last 30 days or is named
   * under `models:`.
   */
  | {
      readonly kind: "retirement";
      readonly model: string;
      readonly date: number;
      readonly names: readonly string[];
      readonly isUsed: boolean;
    }
  | ({ readonly kind: "plugin" } & QuarantinedHook)
  /** A middleware in another process that cannot be reached. */
  | ({ readonly kind: "unreachable" } & UnreachablePlugin)
  | {
      readonly kind: "list";
      readonly provider: string;
      readonly credential: string;
      readonly reason: string;
    }
  /** Prices of the price feed wait for approval, or its document is not accepted. */
  | { readonly kind: "prices"; readonly held: number; readonly reason: string | undefined }
  /** A provider is configured but not mounted because its `when:` is empty. */
  | { readonly kind: "unmounted"; readonly provider: string; readonly reason: string }
);

export interface Attention {
  readonly items: readonly AttentionItem[];
  /** Number of items that are not listed. */
  readonly omitted: number;
  /** Number of limits that were not checked because there are too many limits. */
  readonly uncheckedLimits: number;
}

export interface AttentionOptions {
  readonly status: () => Promise<GatewayStatus>;
  readonly stats: () => Promise<GatewayStats>;
  readonly requestStats: Pick<RequestStats, "readSeries">;
  readonly current: () => Pick<BuiltGeneration, "gen">;
  /** Names under `models:`, with their candidates. */
  readonly modelNames: () => ReadonlyMap<string, readonly string[]>;
  readonly repository: Pick<KeyRepository, "listKeys" | "readLimits">;
  readonly readTree: () => Promise<AccountTree>;
  readonly now?: () => number;
}

const DAY_MS = 86_400_000;
const WARN_BEFORE_MS = { certificate: 30 * DAY_MS, model: 60 * DAY_MS };
const URGENT_BEFORE_MS = { certificate: 7 * DAY_MS, model: 14 * DAY_MS };
const FULL_SHARE = 0.8;
/** Maximum number of checked limits. `MAX_ITEMS` limits the items of an answer. */
const MAX_LIMITS = 10_000;
const MAX_ITEMS = 100;
/** Maximum number of items per type, such as cooldowns or model lists. */
const MAX_PER_TYPE = 20;
const MAX_USED_MODELS = 1_000;
/** How long the full budgets and the used models are cached, in milliseconds. */
const CACHE_TTL_MS = { budgets: 10_000, used: 300_000 };

type ScopedItem = readonly [item: AttentionItem, path: string | undefined];

export function createAttentionCommand(options: AttentionOptions) {
  const now = options.now ?? wallClock;
  let full: { readonly at: number; readonly found: ReturnType<typeof listFullLimits> } | undefined;
  const budgets = () => {
    if (!full || performance.now() - full.at > CACHE_TTL_MS.budgets) {
      full = { at: performance.now(), found: listFullLimits(options, now()) };
      full.found.catch(() => (full = undefined));
    }
    return full.found;
  };
  let read: { readonly at: number; readonly names: ReadonlySet<string> } | undefined;
  const used = () => {
    if (!read || performance.now() - read.at > CACHE_TTL_MS.used)
      read = { at: performance.now(), names: listUsedModels(options.requestStats, now()) };
    return read.names;
  };
  return withInputChecks({
    attention: async ({ account }): Promise<Attention> => {
      const { items, unchecked } = await budgets();
      const own = items.flatMap(([item, path]) =>
        account === undefined || isWithinAccount(path, account) ? [item] : [],
      );
      const all = [
        ...(account === undefined ? await listGatewayItems(options, now()) : []),
        ...own,
        ...listRetirements(options, now(), used),
      ].toSorted((a, b) => urgencyOf(a) - urgencyOf(b));
      return {
        items: all.slice(0, MAX_ITEMS),
        omitted: Math.max(0, all.length - MAX_ITEMS),
        uncheckedLimits: unchecked,
      };
    },
  });
}

/**
 * Returns the sort rank of an item. An unmounted provider is last, because it may be excluded
 * intentionally.
 */
const urgencyOf = ({ severity, kind }: AttentionItem): number =>
  severity === "bad" ? 0 : kind === "unmounted" ? 2 : 1;

/** Returns the items that concern the whole gateway and no account. */
async function listGatewayItems(options: AttentionOptions, now: number): Promise<AttentionItem[]> {
  const [status, readings] = await Promise.all([options.status(), options.stats()]);
  const { lastReload, unmountedProviders, quarantinedHooks, unreachablePlugins, modelLists } =
    status;
  const { held = 0, lastError: feedError } = status.priceFeed ?? {};
  return [
    ...(readings.ledger.ok
      ? []
      : [{ kind: "ledger", severity: "bad", reason: readings.ledger.reason ?? "" } as const]),
    ...(lastReload?.ok === false ? [rejectedReloadItem(lastReload)] : []),
    ...readings.certificates
      .filter(({ expiresAt }) => expiresAt < now + WARN_BEFORE_MS.certificate)
      .map((each) => ({
        kind: "certificate" as const,
        severity:
          each.expiresAt < now + URGENT_BEFORE_MS.certificate
            ? ("bad" as const)
            : ("warn" as const),
        ...each,
      })),
    ...readings.cooldowns
      .filter(({ state }) => state !== "recovering")
      .slice(0, MAX_PER_TYPE)
      .map(({ provider, credential, model, reason, until, rejectsRequests }) => ({
        kind: "cooldown" as const,
        severity: "bad" as const,
        provider,
        credential,
        model,
        reason,
        until,
        rejectsRequests,
      })),
    ...quarantinedHooks
      .slice(0, MAX_PER_TYPE)
      .map((one) => ({ kind: "plugin" as const, severity: "bad" as const, ...one })),
    ...unreachablePlugins
      .slice(0, MAX_PER_TYPE)
      .map((one) => ({ kind: "unreachable" as const, severity: "bad" as const, ...one })),
    ...modelLists
      .filter(({ failures, lastError }) => failures > 0 && lastError !== undefined)
      .slice(0, MAX_PER_TYPE)
      .map(({ provider, credential, lastError }) => ({
        kind: "list" as const,
        severity: "warn" as const,
        provider,
        credential,
        reason: lastError!.message,
      })),
    ...(held > 0 || feedError !== undefined
      ? [{ kind: "prices", severity: "warn", held, reason: feedError } as const]
      : []),
    ...unmountedProviders.slice(0, MAX_PER_TYPE).map((each) => ({
      kind: "unmounted" as const,
      severity: "warn" as const,
      ...each,
    })),
  ];
}

function rejectedReloadItem({
  at,
  problems,
  restartKeys,
}: NonNullable<GatewayStatus["lastReload"]>): AttentionItem {
  const [first] = problems;
  const where = first && `${first.file}:${first.line}: ${first.message}`;
  const restart = restartKeys && `changes of ${restartKeys.join(", ")} require a restart`;
  return {
    kind: "reload",
    severity: "bad",
    at,
    problems: problems.length,
    first: where ?? restart,
  };
}

/**
 * Returns the limits per day, week, month, or in total that are nearly used up, fullest first.
 * Covers valid keys and open accounts.
 */
async function listFullLimits(
  { repository, readTree }: AttentionOptions,
  now: number,
): Promise<{ readonly items: readonly ScopedItem[]; readonly unchecked: number }> {
  const [keys, accounts] = await Promise.all([repository.listKeys(), readTree()]);
  const valid = keys.filter(
    ({ revoked, expires }) => (revoked ?? Infinity) > now && (expires ?? Infinity) > now,
  );
  const all = [
    ...accounts
      .all()
      .filter(({ closedAt }) => closedAt === undefined)
      .flatMap(({ id, name, limits }) =>
        budgetLimitsOf({ subject: "account", id, name }, limits, accounts.path(id)),
      ),
    ...valid.flatMap(({ id, name, limits, account }) =>
      budgetLimitsOf({ subject: "key", id, name }, limits, account && accounts.path(account)),
    ),
  ];
  const looked = all.slice(0, MAX_LIMITS);
  const counted = await repository.readLimits(looked.map((each) => each.limit));
  const found = counted
    .flatMap((count, i) => {
      const share = shareOf(count);
      const { whose, path } = looked[i]!;
      return share < FULL_SHARE
        ? []
        : [{ share, placed: [toFullLimit(count, whose, share), path] as const }];
    })
    .toSorted((a, b) => b.share - a.share);
  return { items: found.map(({ placed }) => placed), unchecked: all.length - looked.length };
}

type LimitSubject = Pick<FullLimit, "subject" | "id" | "name">;
const BUDGET_WINDOWS: ReadonlySet<Limit["per"]> = new Set(["day", "week", "month", "total"]);

const budgetLimitsOf = (
  whose: LimitSubject,
  limits: readonly Limit[] | undefined,
  path: string | undefined,
) =>
  (limits ?? [])
    .filter(({ per }) => BUDGET_WINDOWS.has(per))
    .map((limit) => ({ limit, whose, path }));

const shareOf = ({ used, max }: LimitUsage): number =>
  Number(max) === 0 ? 0 : Number(used) / Number(max);

const toFullLimit = (count: LimitUsage, whose: LimitSubject, share: number): AttentionItem => {
  const { scope: _, remaining: __, ...shown } = toLimitUsage(count);
  return { kind: "budget", severity: share >= 1 ? "bad" : "warn", ...whose, ...shown };
};

/**
 * Returns the models that were used in the last 30 days. Reading a month of statistics takes time.
 */
function listUsedModels(stats: AttentionOptions["requestStats"], now: number): ReadonlySet<string> {
  const range = { from: now - 30 * DAY_MS, to: now + 1, step: "hour", by: "model" } as const;
  return new Set(
    stats.readSeries({ ...range, most: MAX_USED_MODELS }).totals.map(({ name }) => name),
  );
}

/**
 * Returns the models that will be retired, soonest first. Only models in use are listed, because a
 * catalog contains many other models.
 */
function listRetirements(
  { current, modelNames }: AttentionOptions,
  now: number,
  used: () => ReadonlySet<string>,
): AttentionItem[] {
  const listed = current().gen.catalog.list();
  const going = listed.flatMap(({ id, provider, retires }) => {
    const on = retires === undefined || !id.startsWith(`${provider}/`) ? NaN : Date.parse(retires);
    return on < now + WARN_BEFORE_MS.model ? [{ id, on }] : [];
  });
  if (going.length === 0) return [];
  const aliases = modelNames();
  return going
    .map(({ id, on }) => ({
      kind: "retirement" as const,
      severity: on < now + URGENT_BEFORE_MS.model ? ("bad" as const) : ("warn" as const),
      model: id,
      date: on,
      names: [...aliases].filter(([, models]) => models.includes(id)).map(([name]) => name),
      isUsed: used().has(id),
    }))
    .filter((each) => each.isUsed || each.names.length > 0)
    .toSorted((a, b) => a.date - b.date);
}
