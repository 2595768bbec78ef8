// Exports costs for finance tools in the columns of FOCUS 1.2: one line per day, key, model, and
// billing state.
import type { UsageSum } from "../../../admin/commands/ledger-commands.ts";
import { nanoToDecimal } from "../../../money/decimal.ts";
import { inputTokens, outputTokens } from "../../../model/usage.ts";
import type { TotalsBy } from "../../../plugin/store/store.ts";
import { zoneClock } from "../../../lib/time/time-zone.ts";
import { textCell } from "./csv.ts";

/** Dimensions that identify a charge. */
export const FOCUS_DIMENSIONS = [
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

interface FocusCharge {
  readonly total: UsageSum;
  readonly key: string;
  /**
   * Start and exclusive end of the day, and of the month that contains it, in Unix milliseconds.
   */
  readonly day: readonly [number, number];
  readonly month: readonly [number, number];
  /** In the currency of the view, with and without its margin, and in US dollars. */
  readonly cost: string;
  readonly listCost: string;
  readonly usd: string;
  readonly view: ChargeView;
  readonly rate: string;
  readonly quantity: readonly [quantity: string, unit: string];
}

type Column = (of: FocusCharge) => string;
const formatTime = (at: number): string => new Date(at).toISOString().replace(".000Z", "Z");
const dimensionColumn =
  (dimension: TotalsBy): Column =>
  ({ total }) =>
    textCell(total.by[dimension] ?? "");
const costColumn: Column = (of) => of.cost;
const isAdjustment = ({ total }: FocusCharge): boolean => total.by["state"] === "adjusted";
/** The model by its provider's name for it. */
const modelColumn: Column = ({ total }) =>
  textCell((total.by["model"] ?? "").slice((total.by["provider"] ?? "").length + 1));

/**
 * Columns in the order of the specification. Columns that FOCUS does not define begin with `x_`.
 */
const COLUMNS: { readonly [name: string]: Column } = {
  BilledCost: costColumn,
  BillingAccountId: dimensionColumn("credential"),
  BillingAccountName: dimensionColumn("credential"),
  BillingCurrency: ({ view }) => view.currency,
  BillingPeriodEnd: ({ month }) => formatTime(month[1]),
  BillingPeriodStart: ({ month }) => formatTime(month[0]),
  ChargeCategory: (of) => (isAdjustment(of) ? "Adjustment" : "Usage"),
  ChargeClass: (of) => (isAdjustment(of) ? "Correction" : ""),
  ChargeDescription: ({ total }) =>
    textCell(
      `${total.by["state"] === "adjusted" ? "Correction of" : "Calls of"} ${total.by["model"]}`,
    ),
  ChargeFrequency: () => "Usage-Based",
  ChargePeriodEnd: ({ day }) => formatTime(day[1]),
  ChargePeriodStart: ({ day }) => formatTime(day[0]),
  ConsumedQuantity: (of) => (isAdjustment(of) ? "" : of.quantity[0]),
  ConsumedUnit: (of) => (isAdjustment(of) ? "" : of.quantity[1]),
  ContractedCost: costColumn,
  EffectiveCost: costColumn,
  InvoiceIssuerName: dimensionColumn("provider"),
  ListCost: (of) => of.listCost,
  PricingCategory: (of) => (isAdjustment(of) ? "" : "Standard"),
  PricingCurrency: () => "USD",
  PricingCurrencyEffectiveCost: (of) => of.usd,
  PricingQuantity: (of) => (isAdjustment(of) ? "" : of.quantity[0]),
  PricingUnit: (of) => (isAdjustment(of) ? "" : of.quantity[1]),
  ProviderName: dimensionColumn("provider"),
  PublisherName: dimensionColumn("provider"),
  ResourceId: dimensionColumn("model"),
  ResourceName: modelColumn,
  ResourceType: () => "Model",
  ServiceCategory: () => "AI and Machine Learning",
  ServiceName: modelColumn,
  ServiceSubcategory: () => "Generative AI",
  SkuId: dimensionColumn("price"),
  SkuPriceId: dimensionColumn("price"),
  SubAccountId: dimensionColumn("accounts"),
  SubAccountName: dimensionColumn("accounts"),
  Tags: ({ total }) => total.by["labels"] ?? "{}",
  x_state: dimensionColumn("state"),
  x_exchange_rate: (of) => of.rate,
  x_margin_percent: ({ view }) => view.margin,
  x_calls: ({ total }) => String(total.calls),
  x_unpriced_calls: ({ total }) => String(total.unpriced),
  x_key_id: dimensionColumn("key"),
  x_key_name: ({ key }) => textCell(key),
  x_input_tokens: ({ total }) => String(inputTokens(total.usage)),
  x_output_tokens: ({ total }) => String(outputTokens(total.usage)),
};

export const FOCUS_COLUMNS: readonly string[] = Object.keys(COLUMNS);

/** Currency of the costs. Prices are in US dollars. */
export interface ChargeView {
  readonly currency: string;
  /** Percent, as a decimal. */
  readonly margin: string;
  rateOn(day: string): string;
  /** Returns an amount in billionths of the currency. Default margin: the view's. */
  amount(nano: bigint, day: string, margin?: string): bigint;
}

/** Returns the cells of one line. `zone`: time zone of the days. */
export function focusLine(
  sum: UsageSum,
  names: Readonly<Record<string, string>>,
  { zone, view }: { readonly zone: string | undefined; readonly view: ChargeView },
): string[] {
  const clock = zoneClock(zone);
  const day = sum.by["day"] ?? "1970-01-01";
  const nano = BigInt(sum.costNano);
  const noon = Date.parse(`${day}T12:00Z`);
  const next = new Date(noon + 86_400_000).toISOString().slice(0, 10);
  const [year, month] = [new Date(noon).getUTCFullYear(), new Date(noon).getUTCMonth()];
  const first = (m: number) =>
    clock.parseLocalTime(new Date(Date.UTC(year, m)).toISOString().slice(0, 10));
  const charge: FocusCharge = {
    total: sum,
    key: names[sum.by["key"] ?? ""] ?? "",
    day: [clock.parseLocalTime(day), clock.parseLocalTime(next)],
    month: [first(month), first(month + 1)],
    cost: nanoToDecimal(view.amount(nano, day)),
    // A client's own credential pays the list price to the provider.
    listCost: nanoToDecimal(view.amount(nano + BigInt(sum.usage.list_nano_usd ?? 0), day, "0")),
    usd: nanoToDecimal(nano),
    view,
    rate: view.rateOn(day),
    quantity: consumedQuantity(sum),
  };
  return Object.values(COLUMNS).map((column) => column(charge));
}

/** Returns the consumed quantity with its unit: images if any were generated, else tokens. */
function consumedQuantity({ usage }: UsageSum): readonly [string, string] {
  const tokens = inputTokens(usage) + outputTokens(usage);
  return tokens === 0 && usage.images !== undefined
    ? [String(usage.images), "Images"]
    : [String(tokens), "Tokens"];
}
