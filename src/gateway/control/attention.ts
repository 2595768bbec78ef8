// What an operator should act on, in one list, the most urgent first.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Limit, LimitCount } from "../../plugin/limit.ts";
import type { QuarantinedHook } from "../../plugin/notice.ts";
import type { CertificateReading, Readings, RestingReading } from "../../plugin/readings.ts";
import type { BuiltGeneration } from "../generation/build.ts";
import { standsIn } from "../requests/series-choice.ts";
import type { Stats } from "../requests/stats.ts";
import type { Status, UnreachablePlugin } from "../types.ts";
import type { AccountTree } from "./account-tree.ts";
import { type ShownCount, shownCount } from "./grants.ts";
import { answering } from "./input.ts";
import type { Shelf } from "./shelf.ts";

/** A limit that is used up by 80% or more. */
interface FullLimit extends Omit<ShownCount, "scope" | "left"> {
  /** What the limit belongs to, and its ID. */
  readonly of: "key" | "account";
  readonly id: string;
  readonly name: string | undefined;
}

/** One thing to act on. Times are Unix milliseconds. */
export type AttentionItem = { readonly severity: "bad" | "warn" } & (
  | { readonly kind: "ledger"; readonly why: string }
  /** The last reload was refused; the config before stays in use. */
  | {
      readonly kind: "reload";
      readonly at: number;
      readonly problems: number;
      readonly first: string | undefined;
    }
  | ({ readonly kind: "certificate" } & CertificateReading)
  | ({ readonly kind: "cooldown" } & Pick<
      RestingReading,
      "provider" | "credential" | "model" | "why" | "until" | "refuses"
    >)
  | ({ readonly kind: "budget" } & FullLimit)
  /** A model that was used in the last 30 days, or that `models:` names, is or will be withdrawn by its provider. */
  | {
      readonly kind: "retirement";
      readonly model: string;
      readonly on: number;
      readonly names: readonly string[];
      readonly used: boolean;
    }
  | ({ readonly kind: "plugin" } & QuarantinedHook)
  /** A middleware in another process that cannot be reached. */
  | ({ readonly kind: "unreachable" } & UnreachablePlugin)
  | {
      readonly kind: "list";
      readonly provider: string;
      readonly credential: string;
      readonly why: string;
    }
  /** Declared, and not mounted because its `when:` is empty. */
  | { readonly kind: "unmounted"; readonly provider: string; readonly why: string }
);

export interface Attention {
  readonly items: readonly AttentionItem[];
  /** How many more there are. */
  readonly omitted: number;
  /** Limits of keys that were not checked: there are too many. */
  readonly unchecked: number;
}

export interface AttentionOf {
  readonly status: () => Promise<Status>;
  readonly readings: () => Promise<Readings>;
  readonly stats: Pick<Stats, "series">;
  readonly built: () => Pick<BuiltGeneration, "gen">;
  /** Names under `models:`, with their candidates. */
  readonly names: () => ReadonlyMap<string, readonly string[]>;
  readonly shelf: Pick<Shelf, "keys" | "counted">;
  readonly tree: () => Promise<AccountTree>;
  readonly now?: () => number;
}

const DAY = 86_400_000;
const SOON = { certificate: 30 * DAY, model: 60 * DAY };
const URGENT = { certificate: 7 * DAY, model: 14 * DAY };
const FULL = 0.8;
/** Limits that are checked, and items in an answer. */
const LIMITS = 10_000;
const ITEMS = 100;
/** Of cooldowns, of lists and the like. */
const OF_A_KIND = 20;
const USED_MODELS = 1_000;
/** Budgets, and which models were used, are looked through no more often. */
const FRESH_MS = { budgets: 10_000, used: 300_000 };

type Placed = readonly [item: AttentionItem, path: string | undefined];

export function attentionCommand(of: AttentionOf) {
  const now = of.now ?? wallClock;
  let full: { readonly at: number; readonly found: ReturnType<typeof fullLimits> } | undefined;
  const budgets = () => {
    if (!full || performance.now() - full.at > FRESH_MS.budgets) {
      full = { at: performance.now(), found: fullLimits(of, now()) };
      full.found.catch(() => (full = undefined));
    }
    return full.found;
  };
  let read: { readonly at: number; readonly names: ReadonlySet<string> } | undefined;
  const used = () => {
    if (!read || performance.now() - read.at > FRESH_MS.used)
      read = { at: performance.now(), names: usedModels(of.stats, now()) };
    return read.names;
  };
  return answering({
    attention: async ({ account }): Promise<Attention> => {
      const { items, unchecked } = await budgets();
      const own = items.flatMap(([item, path]) =>
        account === undefined || standsIn(path, account) ? [item] : [],
      );
      const all = [
        ...(account === undefined ? await ofGateway(of, now()) : []),
        ...own,
        ...retiring(of, now(), used),
      ].toSorted((a, b) => urgency(a) - urgency(b));
      return {
        items: all.slice(0, ITEMS),
        omitted: Math.max(0, all.length - ITEMS),
        unchecked,
      };
    },
  });
}

/** A provider that is not mounted may be left out on purpose. */
const urgency = ({ severity, kind }: AttentionItem): number =>
  severity === "bad" ? 0 : kind === "unmounted" ? 2 : 1;

/** What a gateway has as a whole, and no account. */
async function ofGateway(of: AttentionOf, now: number): Promise<AttentionItem[]> {
  const [status, readings] = await Promise.all([of.status(), of.readings()]);
  const { lastReload, leftOut, quarantined, unreachable, lists } = status;
  return [
    ...(readings.ledger.ok
      ? []
      : [{ kind: "ledger", severity: "bad", why: readings.ledger.why ?? "" } as const]),
    ...(lastReload?.ok === false ? [refusedReload(lastReload)] : []),
    ...readings.certificates
      .filter(({ expiresAt }) => expiresAt < now + SOON.certificate)
      .map((each) => ({
        kind: "certificate" as const,
        severity: each.expiresAt < now + URGENT.certificate ? ("bad" as const) : ("warn" as const),
        ...each,
      })),
    ...readings.resting
      .filter(({ state }) => state !== "recovering")
      .slice(0, OF_A_KIND)
      .map(({ provider, credential, model, why, until, refuses }) => ({
        kind: "cooldown" as const,
        severity: "bad" as const,
        provider,
        credential,
        model,
        why,
        until,
        refuses,
      })),
    ...quarantined
      .slice(0, OF_A_KIND)
      .map((one) => ({ kind: "plugin" as const, severity: "bad" as const, ...one })),
    ...unreachable
      .slice(0, OF_A_KIND)
      .map((one) => ({ kind: "unreachable" as const, severity: "bad" as const, ...one })),
    ...lists
      .filter(({ failures, lastError }) => failures > 0 && lastError !== undefined)
      .slice(0, OF_A_KIND)
      .map(({ provider, credential, lastError }) => ({
        kind: "list" as const,
        severity: "warn" as const,
        provider,
        credential,
        why: lastError!.message,
      })),
    ...leftOut.slice(0, OF_A_KIND).map((each) => ({
      kind: "unmounted" as const,
      severity: "warn" as const,
      ...each,
    })),
  ];
}

function refusedReload({
  at,
  problems,
  refused,
}: NonNullable<Status["lastReload"]>): AttentionItem {
  const [first] = problems;
  const where = first && `${first.file}:${first.line}: ${first.message}`;
  const restart = refused && `${refused.join(", ")} can only change with a restart`;
  return {
    kind: "reload",
    severity: "bad",
    at,
    problems: problems.length,
    first: where ?? restart,
  };
}

/** Limits by day, week, month or in total of keys that are valid and of accounts. The fullest first. */
async function fullLimits(
  { shelf, tree }: AttentionOf,
  now: number,
): Promise<{ readonly items: readonly Placed[]; readonly unchecked: number }> {
  const [keys, accounts] = await Promise.all([shelf.keys(), tree()]);
  const valid = keys.filter(
    ({ revoked, expires }) => (revoked ?? Infinity) > now && (expires ?? Infinity) > now,
  );
  const all = [
    ...accounts
      .all()
      .filter(({ ended }) => ended === undefined)
      .flatMap(({ id, name, limits }) =>
        budgetsOf({ of: "account", id, name }, limits, accounts.path(id)),
      ),
    ...valid.flatMap(({ id, name, limits, account }) =>
      budgetsOf({ of: "key", id, name }, limits, account && accounts.path(account)),
    ),
  ];
  const looked = all.slice(0, LIMITS);
  const counted = await shelf.counted(looked.map((each) => each.limit));
  const found = counted
    .flatMap((count, i) => {
      const share = shareOf(count);
      const { whose, path } = looked[i]!;
      return share < FULL ? [] : [{ share, placed: [fullOf(count, whose, share), path] as const }];
    })
    .toSorted((a, b) => b.share - a.share);
  return { items: found.map(({ placed }) => placed), unchecked: all.length - looked.length };
}

type Whose = Pick<FullLimit, "of" | "id" | "name">;
const BUDGETS: ReadonlySet<Limit["per"]> = new Set(["day", "week", "month", "total"]);

const budgetsOf = (whose: Whose, limits: readonly Limit[] | undefined, path: string | undefined) =>
  (limits ?? []).filter(({ per }) => BUDGETS.has(per)).map((limit) => ({ limit, whose, path }));

const shareOf = ({ used, max }: LimitCount): number =>
  Number(max) === 0 ? 0 : Number(used) / Number(max);

const fullOf = (count: LimitCount, whose: Whose, share: number): AttentionItem => {
  const { scope: _, left: __, ...shown } = shownCount(count);
  return { kind: "budget", severity: share >= 1 ? "bad" : "warn", ...whose, ...shown };
};

/** In the last 30 days. A month of counts takes a moment to read. */
function usedModels(stats: AttentionOf["stats"], now: number): ReadonlySet<string> {
  const range = { from: now - 30 * DAY, to: now + 1, step: "hour", by: "model" } as const;
  return new Set(stats.series({ ...range, most: USED_MODELS }).totals.map(({ name }) => name));
}

/** Sooner ones first. A catalog lists many more that are not used. */
function retiring(
  { built, names }: AttentionOf,
  now: number,
  used: () => ReadonlySet<string>,
): AttentionItem[] {
  const listed = built().gen.catalogue.list();
  const going = listed.flatMap(({ id, provider, retires }) => {
    const on = retires === undefined || !id.startsWith(`${provider}/`) ? NaN : Date.parse(retires);
    return on < now + SOON.model ? [{ id, on }] : [];
  });
  if (going.length === 0) return [];
  const aliases = names();
  return going
    .map(({ id, on }) => ({
      kind: "retirement" as const,
      severity: on < now + URGENT.model ? ("bad" as const) : ("warn" as const),
      model: id,
      on,
      names: [...aliases].filter(([, models]) => models.includes(id)).map(([name]) => name),
      used: used().has(id),
    }))
    .filter((each) => each.used || each.names.length > 0)
    .toSorted((a, b) => a.on - b.on);
}
