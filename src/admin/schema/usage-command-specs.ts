// Specifications of the usage command for charts, and the usage dimensions.
import type { CommandSpec } from "./command-spec.ts";
import type { TotalsBy } from "../../plugin/store/store.ts";
import { outputSchema, integerUpTo, LEDGER_FILTER, text, withCli } from "./schema-fields.ts";

/** Dimensions of usage reports. */
export const DIMENSIONS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
  "outcome",
  "state",
  "day",
  "hour",
  "label",
  "price",
  "accounts",
  "labels",
] as const satisfies readonly TotalsBy[];

/** Dimensions by which the use of prompt caches is grouped. */
export const CACHE_DIMENSIONS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
] as const satisfies readonly TotalsBy[];

export const TIME_ZONE_FIELD = withCli(text("Time zone, such as Europe/Berlin. Default: UTC"), {
  value: "zone",
});

/** Dimensions of the lines in a chart. Its steps are hours or days. */
const CURVE_DIMENSIONS = DIMENSIONS.filter((each) => each !== "day" && each !== "hour");

export const USAGE_COMMAND_SPECS = {
  "usage.series": {
    summary: "Report usage and cost by hour or day",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        by: { enum: CURVE_DIMENSIONS, description: "Grouping. Default: model" },
        step: { enum: ["hour", "day"], description: "Length of each interval. Default: day" },
        tz: TIME_ZONE_FIELD,
        most: integerUpTo(
          100,
          "Number of largest groups. All others are combined into one. Default: 10",
        ),
      },
    },
    output: outputSchema("times", "series", "names"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: false,
  },
  "usage.forecast": {
    summary: "Forecast spend and the exhaustion of budgets",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        account: LEDGER_FILTER.account,
        days: integerUpTo(90, "Number of complete days that the rate is based on. Default: 14"),
      },
    },
    output: outputSchema("perDayUsd", "days", "month", "budgets"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
