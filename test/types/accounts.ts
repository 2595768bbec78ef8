// What an author may say of accounts and limits, and what must not compile.
import {
  defineMiddleware,
  LIMIT_SCHEMA,
  parseScopedLimit,
  type LedgerEntry,
  type Identity,
  type Limit,
  type LimitUsage,
  type LedgerQuery,
  type RequestRecord,
  type TotalsBy,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

// ── limits as an operator writes them, in a third party's own options ──
export const tokens = defineMiddleware({
  api: 1,
  name: "tokens",
  summary: "Keys of another system",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      limits: { type: "array", items: LIMIT_SCHEMA, default: [], description: "What each may use" },
      account: { type: "string", "x-account": true, description: "What they draw on" },
    },
  },
  setup: ({ limits, account }) => ({
    admit(x, secret) {
      const id = secret ?? "none";
      is<Same<typeof limits, string[]>>();
      // @ts-expect-error  a limit is a text
      parseScopedLimit({ unit: "requests", max: 1, per: "day" }, "key:x");
      const own: readonly Limit[] = limits.map((limit) => parseScopedLimit(limit, `key:${id}`));
      x.identify({ id, limits: own, account });
      // @ts-expect-error  an account is named; what it may is the host's to say
      x.identify({ id, account: { id: "research" } });
      // @ts-expect-error  a limit is counted for a key or an account
      parseScopedLimit(limits[0]!);
    },
  }),
});

// ── what a client may be shown of its limits ──
export const shown = defineMiddleware({
  api: 1,
  name: "shown",
  summary: "Tells what is left",
  sends: "nowhere",
  setup: (_, ctx) => ({
    async admit(x) {
      is<Same<typeof x.limits, readonly Limit[]>>();
      const counted = await ctx.ledger.readLimits?.(x.limits, Date.now());
      is<Same<typeof counted, readonly LimitUsage[] | undefined>>();
      // @ts-expect-error  money is not a float
      const used: number | undefined = counted?.[0]?.used;
      // @ts-expect-error  what a client may be shown is not a plugin's to change
      x.limits = [];
      return void used;
    },
  }),
});

is<Same<NonNullable<Identity["account"]>, string>>();
is<Same<NonNullable<LedgerEntry["account"]>, string>>();
is<Same<NonNullable<RequestRecord["account"]>, string>>();
export const query: LedgerQuery = { account: "acme" };
export const by: readonly TotalsBy[] = ["account", "day"];
// @ts-expect-error  no such group
export const wrong: readonly TotalsBy[] = ["parent"];
