// Specifications of the usage command for charts, and the usage dimensions.
import type { CommandSpec } from "./command-spec.ts";
import type { TotalsBy } from "../../plugin/store/store.ts";
import { outputSchema, integerUpTo, LEDGER_FILTER, text } from "./schema-fields.ts";

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

/** Dimensions of the lines in a chart. Its steps are hours or days. */
const CURVE_DIMENSIONS = DIMENSIONS.filter((each) => each !== "day" && each !== "hour");

export const USAGE_COMMAND_SPECS = {
  "usage.series": {
    summary: "what was used and what it cost, hour by hour or day by day",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        by: { enum: CURVE_DIMENSIONS, description: "What is counted apart; model by default" },
        step: { enum: ["hour", "day"], description: "How long each is: day by default" },
        tz: text("Whose days and hours they are, as in Europe/Berlin; UTC by default"),
        most: integerUpTo(
          100,
          "So many of them, the largest, and the others as one; 10 by default",
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
} as const satisfies Readonly<Record<string, CommandSpec>>;
