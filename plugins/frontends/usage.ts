// GET /v1/usage: what the presented key has used, and what it cost; of no other key.
import {
  defineFrontend,
  fail,
  limitText,
  type Arrival,
  type Context,
  type Json,
  type Store,
  type Total,
} from "tollgate/plugin";
import { isZone, zoneClock } from "tollgate/store";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { at } from "./paths.ts";
import { accept, presented } from "./presented.ts";

const anthropic = messages().server!;
const openai = images().server!;

/** What a key may know of itself; credentials and accounts are the operator's. */
const BY = ["model", "provider", "day", "hour", "label", "frontend", "outcome"] as const;
const ONLY = ["model", "provider", "label", "frontend", "outcome"] as const;
const DAY_MS = 86_400_000;
/** Names that an error lists. */
const NAMED = 20;

export default defineFrontend({
  api: 1,
  name: "usage",
  summary: "What the presented key has used, and what it cost",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "x-api-key") },
  },
  setup({ accept: schemes }, ctx) {
    async function serve(x: Arrival) {
      const key = x.identity?.id ?? fail("unauthenticated", "This request brings no key.");
      const by = byOf(x);
      const zone = zoneOf(x);
      const now = Date.now();
      const from = moment(x, "from", zone) ?? now - 30 * DAY_MS;
      const to = moment(x, "to", zone);
      const { signal } = x;
      const query = { key, from, ...(to !== undefined && { to }), ...onlyOf(x) };
      const [rows, [all]] = await Promise.all([
        ctx.ledger.totals({ ...query, by, zone }, { signal }),
        ctx.ledger.totals({ ...query, by: [] }, { signal }),
      ]);
      if (all === undefined) await mustBe(ctx.ledger, key, query, signal);
      const whole = all?.estimated !== undefined || all === undefined;
      const [guessed, [guessedAll]] = whole
        ? [[], []]
        : await Promise.all([
            ctx.ledger.totals({ ...query, by, zone, state: "estimated" }, { signal }),
            ctx.ledger.totals({ ...query, by: [], state: "estimated" }, { signal }),
          ]);
      const name = (total: Total) => JSON.stringify(by.map((each) => total.by[each]));
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
          total: shown(all, guessedAll?.calls),
          data: rows.map((row) => ({ ...row.by, ...shown(row, estimated.get(name(row))) })),
          limits: await limitsOf(x, ctx.ledger, now),
        } as unknown as Json,
      };
    }
    return {
      secret: (headers) => presented(headers, schemes),
      fault: (fault, x) =>
        (x.headers["anthropic-version"] === undefined ? openai : anthropic).fault(fault, {
          id: x.id,
        }),
      routes: [{ method: "GET", path: at("/usage"), serve }],
    };
  },
});

/** Its own, and those of its accounts that tell of them; with what is left where the store can say. */
async function limitsOf(x: Arrival, ledger: Context["ledger"], now: number): Promise<Json> {
  const counted = (await ledger.counted?.(x.limits, now).catch(() => [])) ?? [];
  return x.limits.map((limit, i) => {
    const { unit, per, scope } = limit;
    const amount = (of: number | bigint) => (unit === "nano_usd" ? usd(BigInt(of)) : Number(of));
    const at = counted[i];
    return {
      limit: limitText(limit),
      of: scope === `key:${x.identity!.id}` ? "key" : scope,
      ...(at && {
        used: amount(at.used),
        held: amount(at.held),
        left: amount(at.left),
        resets_at: per === "total" || per === "open" ? null : new Date(at.resetsAt).toISOString(),
      }),
    };
  });
}

/** `estimated`: asked of a store that does not count them by itself. */
const shown = (total: Total | undefined, estimated: number | undefined) => ({
  calls: total?.calls ?? 0,
  usage: total?.usage ?? {},
  /** A decimal string: money is no float. */
  cost_usd: usd(total?.costNano ?? 0n),
  unpriced_calls: total?.unpriced ?? 0,
  estimated_calls: total?.estimated ?? estimated ?? 0,
});

/** Nano-dollars as "0.001234". */
function usd(nano: bigint): string {
  const sign = nano < 0n ? "-" : "";
  const digits = `${nano < 0n ? -nano : nano}`.padStart(10, "0");
  const part = digits.slice(-9).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -9)}${part === "" ? "" : `.${part}`}`;
}

function byOf(x: Arrival): readonly (typeof BY)[number][] {
  const said = (x.query.get("by") ?? "model").split(",").filter(Boolean);
  for (const each of said)
    if (!BY.includes(each as "day"))
      fail("invalid", `by is one or more of ${BY.join(", ")}, not "${each}".`, { param: "by" });
  return said as (typeof BY)[number][];
}

/** Which rows of the key. */
const onlyOf = (x: Arrival): { [D in (typeof ONLY)[number]]?: string } =>
  Object.fromEntries(
    ONLY.map((name) => [name, x.query.get(name)]).filter(([, value]) => value !== null),
  );

/** Nothing was found: because of a name that this key has never used? Then that is the answer. */
async function mustBe(
  ledger: Pick<Store, "totals">,
  key: string,
  query: ReturnType<typeof onlyOf>,
  signal: AbortSignal,
): Promise<void> {
  for (const name of ONLY) {
    const said = query[name];
    if (said === undefined) continue;
    const known = (await ledger.totals({ key, by: [name] }, { signal })).map(({ by }) => by[name]!);
    if (known.some((each) => each === said || (name === "model" && each.endsWith(`/${said}`))))
      continue;
    const there = known.filter(Boolean).slice(0, NAMED);
    fail(
      "invalid",
      `This key has no call of the ${name} "${said}".${there.length > 0 ? ` It has of ${there.join(", ")}.` : ""}`,
      { param: name },
    );
  }
}

function zoneOf(x: Arrival): string | undefined {
  const said = x.query.get("tz");
  if (said === null) return undefined;
  if (!isZone(said))
    fail("invalid", `tz is a time zone as in Europe/Berlin, not "${said}".`, { param: "tz" });
  return said;
}

/** Unix seconds, or a date of the zone. */
function moment(x: Arrival, name: string, zone: string | undefined): number | undefined {
  const text = x.query.get(name);
  if (text === null) return undefined;
  const wall = zoneClock(zone).moment(text);
  const at = /^\d{9,10}$/.test(text)
    ? Number(text) * 1_000
    : Number.isNaN(wall)
      ? Date.parse(text)
      : wall;
  return Number.isNaN(at)
    ? fail("invalid", `${name} is Unix seconds or a date as in 2026-11-01, not "${text}".`, {
        param: name,
      })
    : at;
}
