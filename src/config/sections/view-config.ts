// The `views` section: the currency and margin in which amounts are shown to an account.
import type { Schema } from "../schema-dialect.ts";
import { closedObject, names, path, text } from "../schema-builders.ts";
import type { Mapping } from "../source/config-tree.ts";
import type { ViewConfig } from "../gateway-config.ts";

const DECIMAL = String.raw`^\d{1,9}(\.\d{1,9})?$`;

export const VIEW_SCHEMA: Schema = {
  ...closedObject(
    {
      currency: text("Currency code of ISO 4217", {
        pattern: "^[A-Z]{3}$",
        "x-expects": "a currency code such as EUR",
      }),
      rate: text("Units of the currency per US dollar. Default: 1 for USD", {
        pattern: DECIMAL,
        "x-expects": 'a decimal such as "0.92"',
      }),
      rates: path("CSV file with the columns date and rate. Replaces `rate`"),
      margin: text("Percent that is added to the cost", {
        pattern: DECIMAL,
        "x-expects": 'a decimal such as "12.5"',
        default: "0",
      }),
      accounts: names("Accounts that have this view, with the accounts nested under them"),
    },
    { required: ["currency"] },
  ),
};

export const toViews = (
  views: Readonly<Record<string, Mapping>>,
): ReadonlyMap<string, ViewConfig> =>
  new Map(
    Object.entries(views).map(([name, view]) => [
      name,
      {
        currency: view["currency"] as string,
        rate: view["rate"] as string | undefined,
        ratesFile: view["rates"] as string | undefined,
        margin: view["margin"] as string,
        accounts: (view["accounts"] ?? []) as readonly string[],
      },
    ]),
  );
