// GET /v1/usage: what the presented key has used, and what it cost; of no other key.
import { defineFrontend, fail, type Arrival, type Json, type Total } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { at } from "./paths.ts";
import { accept, presented } from "./presented.ts";

const anthropic = messages().server!;
const openai = images().server!;

const BY = ["model", "provider", "day", "label"] as const;
const DAY_MS = 86_400_000;

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
      const now = Date.now();
      const from = moment(x, "from") ?? now - 30 * DAY_MS;
      const to = moment(x, "to");
      const { signal } = x;
      const query = { key, from, ...(to !== undefined && { to }) };
      const [rows, [all], guessed, [guessedAll]] = await Promise.all([
        ctx.ledger.totals({ ...query, by }, { signal }),
        ctx.ledger.totals({ ...query, by: [] }, { signal }),
        ctx.ledger.totals({ ...query, by, state: "estimated" }, { signal }),
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
          total: shown(all, guessedAll?.calls ?? 0),
          data: rows.map((row) => ({ ...row.by, ...shown(row, estimated.get(name(row)) ?? 0) })),
          limits: (x.identity?.limits ?? []).map(({ unit, max, per }) => ({
            unit: unit === "nano_usd" ? "usd" : unit,
            max: unit === "nano_usd" ? usd(BigInt(max)) : Number(max),
            per,
          })),
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

const shown = (total: Total | undefined, estimated: number) => ({
  calls: total?.calls ?? 0,
  usage: total?.usage ?? {},
  /** A decimal string: money is no float. */
  cost_usd: usd(total?.costNano ?? 0n),
  unpriced_calls: total?.unpriced ?? 0,
  estimated_calls: estimated,
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

/** Unix seconds, or a date. */
function moment(x: Arrival, name: string): number | undefined {
  const text = x.query.get(name);
  if (text === null) return undefined;
  const at = /^\d{9,10}$/.test(text) ? Number(text) * 1_000 : Date.parse(text);
  return Number.isNaN(at)
    ? fail("invalid", `${name} is Unix seconds or a date as in 2026-11-01, not "${text}".`, {
        param: name,
      })
    : at;
}
