// Costs as finance takes them in: a line for each day, key, model and bill, in the columns of FOCUS 1.2.
import type { Sum } from "../../gateway/control/ledger-commands.ts";
import { nanoToDecimal } from "../../money/format.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { TotalsBy } from "../../plugin/store.ts";
import { zoneClock } from "../../lib/zone.ts";
import { textCell } from "./csv.ts";

/** What a charge is told apart by. */
export const FOCUS_BY = [
  "day",
  "key",
  "accounts",
  "provider",
  "model",
  "credential",
  "labels",
  "price",
  "state",
] as const satisfies readonly TotalsBy[];

interface Charge {
  readonly sum: Sum;
  readonly key: string;
  /** The day, and the month that it is in, in Unix milliseconds; ends are no part of them. */
  readonly day: readonly [number, number];
  readonly month: readonly [number, number];
  readonly cost: string;
  readonly pieces: readonly [quantity: string, unit: string];
}

type Column = (of: Charge) => string;
const time = (at: number): string => new Date(at).toISOString().replace(".000Z", "Z");
const by =
  (dimension: TotalsBy): Column =>
  ({ sum }) =>
    textCell(sum.by[dimension] ?? "");
const cost: Column = (of) => of.cost;
const adjusts = ({ sum }: Charge): boolean => sum.by["state"] === "adjusted";
/** The model as its provider calls it. */
const model: Column = ({ sum }) =>
  textCell((sum.by["model"] ?? "").slice((sum.by["provider"] ?? "").length + 1));

/** In the order of the specification; what is ours begins with `x_`. */
const COLUMNS: { readonly [name: string]: Column } = {
  BilledCost: cost,
  BillingAccountId: by("credential"),
  BillingAccountName: by("credential"),
  BillingCurrency: () => "USD",
  BillingPeriodEnd: ({ month }) => time(month[1]),
  BillingPeriodStart: ({ month }) => time(month[0]),
  ChargeCategory: (of) => (adjusts(of) ? "Adjustment" : "Usage"),
  ChargeClass: (of) => (adjusts(of) ? "Correction" : ""),
  ChargeDescription: ({ sum }) =>
    textCell(`${sum.by["state"] === "adjusted" ? "Correction of" : "Calls of"} ${sum.by["model"]}`),
  ChargeFrequency: () => "Usage-Based",
  ChargePeriodEnd: ({ day }) => time(day[1]),
  ChargePeriodStart: ({ day }) => time(day[0]),
  ConsumedQuantity: (of) => (adjusts(of) ? "" : of.pieces[0]),
  ConsumedUnit: (of) => (adjusts(of) ? "" : of.pieces[1]),
  ContractedCost: cost,
  EffectiveCost: cost,
  InvoiceIssuerName: by("provider"),
  ListCost: cost,
  PricingCategory: (of) => (adjusts(of) ? "" : "Standard"),
  PricingQuantity: (of) => (adjusts(of) ? "" : of.pieces[0]),
  PricingUnit: (of) => (adjusts(of) ? "" : of.pieces[1]),
  ProviderName: by("provider"),
  PublisherName: by("provider"),
  ResourceId: by("model"),
  ResourceName: model,
  ResourceType: () => "Model",
  ServiceCategory: () => "AI and Machine Learning",
  ServiceName: model,
  ServiceSubcategory: () => "Generative AI",
  SkuId: by("price"),
  SkuPriceId: by("price"),
  SubAccountId: by("accounts"),
  SubAccountName: by("accounts"),
  Tags: ({ sum }) => sum.by["labels"] ?? "{}",
  x_state: by("state"),
  x_calls: ({ sum }) => String(sum.calls),
  x_unpriced_calls: ({ sum }) => String(sum.unpriced),
  x_key_id: by("key"),
  x_key_name: ({ key }) => textCell(key),
  x_input_tokens: ({ sum }) => String(inputTokens(sum.usage)),
  x_output_tokens: ({ sum }) => String(outputTokens(sum.usage)),
};

export const FOCUS_COLUMNS: readonly string[] = Object.keys(COLUMNS);

/** One line's cells. `zone`: whose days they are. */
export function focusLine(
  sum: Sum,
  names: Readonly<Record<string, string>>,
  zone: string | undefined,
): string[] {
  const clock = zoneClock(zone);
  const day = sum.by["day"] ?? "1970-01-01";
  const noon = Date.parse(`${day}T12:00Z`);
  const next = new Date(noon + 86_400_000).toISOString().slice(0, 10);
  const [year, month] = [new Date(noon).getUTCFullYear(), new Date(noon).getUTCMonth()];
  const first = (m: number) => clock.moment(new Date(Date.UTC(year, m)).toISOString().slice(0, 10));
  const charge: Charge = {
    sum,
    key: names[sum.by["key"] ?? ""] ?? "",
    day: [clock.moment(day), clock.moment(next)],
    month: [first(month), first(month + 1)],
    cost: nanoToDecimal(BigInt(sum.costNano)),
    pieces: piecesOf(sum),
  };
  return Object.values(COLUMNS).map((column) => column(charge));
}

/** Tokens, unless it is pictures that were made. */
function piecesOf({ usage }: Sum): readonly [string, string] {
  const tokens = inputTokens(usage) + outputTokens(usage);
  return tokens === 0 && usage.images !== undefined
    ? [String(usage.images), "Images"]
    : [String(tokens), "Tokens"];
}
