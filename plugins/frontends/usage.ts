// Frontend for GET /v1/usage: returns the usage and cost of the presented key, and of no other key.
import {
  defineFrontend,
  fail,
  formatLimit,
  type RequestHead,
  type Context,
  type Json,
  type Store,
  type LedgerTotal,
} from "tollgate/plugin";
import { isTimeZone, zoneClock } from "tollgate/store";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths } from "./route-paths.ts";

const anthropic = messages().server!;
const openai = images().server!;

/** Dimensions that a key may group by. Credentials and accounts are visible only to operators. */
const GROUP_BY = ["model", "provider", "day", "hour", "label", "frontend", "outcome"] as const;
const FILTERS = ["model", "provider", "label", "frontend", "outcome"] as const;
const DAY_MS = 86_400_000;
/** Maximum number of names in an error. */
const MAX_LISTED_NAMES = 20;

export default defineFrontend({
  api: 1,
  name: "usage",
  summary: "Report the usage and cost of the presented key",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "x-api-key") },
  },
  setup({ accept: schemes }, ctx) {
    async function serve(x: RequestHead) {
      const key = x.identity?.id ?? fail("unauthenticated", "Missing API key.");
      const { by, label } = readGroupBy(x);
      const zone = readTimeZone(x);
      const now = Date.now();
      const from = readTime(x, "from", zone) ?? now - 30 * DAY_MS;
      const to = readTime(x, "to", zone);
      const { signal } = x;
      const query = { key, from, ...(to !== undefined && { to }), ...readFilters(x) };
      const [rows, [all]] = await Promise.all([
        ctx.ledger
          .sumEntries({ ...query, by, zone }, { signal })
          .then((totals) => (label === undefined ? totals : withLabel(totals, label))),
        ctx.ledger.sumEntries({ ...query, by: [] }, { signal }),
      ]);
      if (all === undefined) await rejectUnknownNames(ctx.ledger, key, query, signal);
      if (label !== undefined && rows.length === 0)
        await rejectUnknownLabel(ctx.ledger, key, label, signal);
      const whole = all?.estimated !== undefined || all === undefined;
      const [guessed, [guessedAll]] = whole
        ? [[], []]
        : await Promise.all([
            ctx.ledger.sumEntries({ ...query, by, zone, state: "estimated" }, { signal }),
            ctx.ledger.sumEntries({ ...query, by: [], state: "estimated" }, { signal }),
          ]);
      const name = (total: LedgerTotal) => JSON.stringify(by.map((each) => total.by[each]));
      const estimated = new Map(guessed.map((total) => [name(total), total.calls]));
      return {
        status: 200,
        headers: { "cache-control": "no-store" },
        body: {
          object: "usage",
          key,
          from: new Date(from).toISOString(),
          to: new Date(to ?? now).toISOString(),
          ...(zone !== undefined && { tz: zone }),
          total: toUsageJson(all, guessedAll?.calls),
          data: rows.map((row) => ({
            ...groupOf(row, label),
            ...toUsageJson(row, estimated.get(name(row))),
          })),
          limits: await limitsOf(x, ctx.ledger, now),
        } as unknown as Json,
      };
    }
    return {
      extractCredential: (headers) => extractCredential(headers, schemes),
      encodeFault: (fault, x) =>
        (x.headers["anthropic-version"] === undefined ? openai : anthropic).encodeFault(fault, {
          id: x.id,
        }),
      routes: [{ method: "GET", path: versionedPaths("/usage"), handle: serve }],
    };
  },
});

/**
 * Returns the limits of the key, and of its accounts that disclose them. If the store supports it,
 * the remaining amounts are added.
 */
async function limitsOf(x: RequestHead, ledger: Context["ledger"], now: number): Promise<Json> {
  const counted = (await ledger.readLimits?.(x.limits, now).catch(() => [])) ?? [];
  return x.limits.map((limit, i) => {
    const { unit, per, scope } = limit;
    const amount = (of: number | bigint) => (unit === "nano_usd" ? usd(BigInt(of)) : Number(of));
    const at = counted[i];
    return {
      limit: formatLimit(limit),
      of: scope === `key:${x.identity!.id}` ? "key" : scope,
      ...(at && {
        used: amount(at.used),
        held: amount(at.reserved),
        left: amount(at.remaining),
        resets_at: per === "total" || per === "open" ? null : new Date(at.resetsAt).toISOString(),
      }),
    };
  });
}

/**
 * Returns a total as JSON.
 * @param estimated Number of estimated calls, for stores whose totals do not include it.
 */
const toUsageJson = (total: LedgerTotal | undefined, estimated: number | undefined) => ({
  calls: total?.calls ?? 0,
  usage: total?.usage ?? {},
  /** The cost is decimal text, because a floating-point number would be inexact. */
  cost_usd: usd(total?.costNano ?? 0n),
  unpriced_calls: total?.unpriced ?? 0,
  estimated_calls: total?.estimated ?? estimated ?? 0,
});

/** Formats nano-dollars as dollars: "0.001234". */
function usd(nano: bigint): string {
  const sign = nano < 0n ? "-" : "";
  const digits = `${nano < 0n ? -nano : nano}`.padStart(10, "0");
  const part = digits.slice(-9).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -9)}${part === "" ? "" : `.${part}`}`;
}

type GroupDimension = (typeof GROUP_BY)[number];
interface GroupBy {
  readonly by: readonly GroupDimension[];
  /** Name of the label that groups the calls, such as the name of a scope. */
  readonly label: string | undefined;
}

/** Reads the dimensions. A name that is no dimension is the name of a label. */
function readGroupBy(x: RequestHead): GroupBy {
  const names = (x.query.get("by") ?? "model").split(",").filter(Boolean);
  const [label, ...others] = names.filter((name) => !GROUP_BY.includes(name as GroupDimension));
  if (others.length > 0 || (label !== undefined && names.includes("label")))
    fail(
      "invalid",
      `by must be one or more of ${GROUP_BY.join(", ")}, and at most one name of a label.`,
      { param: "by" },
    );
  const by = names.map((name) => (name === label ? "label" : (name as GroupDimension)));
  return { by, label };
}

/** Returns the totals of calls that have the label. */
const withLabel = (totals: readonly LedgerTotal[], label: string): readonly LedgerTotal[] =>
  totals.filter(({ by }) => by["label"]?.startsWith(`${label}=`));

/** Returns the group of a total. The value of a label is under its own name. */
function groupOf({ by }: LedgerTotal, label: string | undefined): LedgerTotal["by"] {
  if (label === undefined) return by;
  const { label: text = "", ...others } = by;
  return { ...others, [label]: text.slice(label.length + 1) };
}

/** Throws if no call of the key has the label. */
async function rejectUnknownLabel(
  ledger: Pick<Store, "sumEntries">,
  key: string,
  label: string,
  signal: AbortSignal,
): Promise<void> {
  const totals = await ledger.sumEntries({ key, by: ["label"] }, { signal });
  const names = new Set(
    totals.flatMap(({ by }) => (by["label"] ? [by["label"].split("=")[0]!] : [])),
  );
  if (names.has(label)) return;
  const known = [...GROUP_BY, ...[...names].slice(0, MAX_LISTED_NAMES)];
  fail("invalid", `by must be one or more of ${known.join(", ")}, not "${label}".`, {
    param: "by",
  });
}

/** Reads the filters on the key's rows. */
const readFilters = (x: RequestHead): { [D in (typeof FILTERS)[number]]?: string } =>
  Object.fromEntries(
    FILTERS.map((name) => [name, x.query.get(name)]).filter(([, value]) => value !== null),
  );

/**
 * Called if no row matched. Rejects the request if a filter contains a name that this key has never
 * used.
 */
async function rejectUnknownNames(
  ledger: Pick<Store, "sumEntries">,
  key: string,
  query: ReturnType<typeof readFilters>,
  signal: AbortSignal,
): Promise<void> {
  for (const name of FILTERS) {
    const value = query[name];
    if (value === undefined) continue;
    const known = (await ledger.sumEntries({ key, by: [name] }, { signal })).map(
      ({ by }) => by[name]!,
    );
    if (known.some((each) => each === value || (name === "model" && each.endsWith(`/${value}`))))
      continue;
    const there = known.filter(Boolean).slice(0, MAX_LISTED_NAMES);
    fail(
      "invalid",
      `This key has no calls with the ${name} "${value}".${there.length > 0 ? ` Known values: ${there.join(", ")}.` : ""}`,
      { param: name },
    );
  }
}

function readTimeZone(x: RequestHead): string | undefined {
  const timeZone = x.query.get("tz");
  if (timeZone === null) return undefined;
  if (!isTimeZone(timeZone))
    fail("invalid", `tz must be a time zone such as Europe/Berlin, not "${timeZone}".`, {
      param: "tz",
    });
  return timeZone;
}

/** Parses Unix seconds, or a date in the time zone. */
function readTime(x: RequestHead, name: string, zone: string | undefined): number | undefined {
  const text = x.query.get(name);
  if (text === null) return undefined;
  const wall = zoneClock(zone).parseLocalTime(text);
  const at = /^\d{9,10}$/.test(text)
    ? Number(text) * 1_000
    : Number.isNaN(wall)
      ? Date.parse(text)
      : wall;
  return Number.isNaN(at)
    ? fail("invalid", `${name} must be Unix seconds or a date such as 2026-11-01, not "${text}".`, {
        param: name,
      })
    : at;
}
