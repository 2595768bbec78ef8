// Reads the cost exports of clouds, as CSV files: the Cost and Usage Report of AWS, the billing
// export of Google Cloud from BigQuery, and the cost details of Azure. Their names of a model are
// products and meters. `models` maps them to the names of the ledger.
import type { Unit } from "tollgate/plugin";
import { parseCount, parsePico, type BillLine } from "./bill-line.ts";
import { columnOf, readCsv, type CsvRow } from "./csv.ts";

export type CloudExport = "aws" | "google" | "azure";

export interface ExportOptions {
  /** Name of the file, for the IDs of lines. */
  readonly file: string;
  /** Names of the ledger by names of the bill. */
  readonly models: ReadonlyMap<string, string>;
}

export function* readExport(
  kind: CloudExport,
  text: string,
  options: ExportOptions,
): Generator<BillLine, void> {
  let number = 1;
  for (const row of readCsv(text)) {
    number++;
    const line = READERS[kind](row);
    if (!line) continue;
    const model =
      line.model === undefined ? undefined : (options.models.get(line.model) ?? line.model);
    yield { ...line, model, id: `${options.file}:${number}` };
  }
}

type PartialLine = Omit<BillLine, "id">;

/** Returns the unit that a text describes. The order matters: cached input is not input. */
export function unitOf(text: string): Unit | undefined {
  const words = text.toLowerCase();
  if (/cache[ _-]?write|cachewrite/.test(words))
    return /1h|1 hour/.test(words) ? "cache_write_1h" : "cache_write_5m";
  if (/cache[ _-]?read|cacheread|cached|cachd|cchd/.test(words)) return "cache_read";
  const audio = /audio/.test(words);
  const image = /image/.test(words);
  if (/input|\binp\b|prompt/.test(words)) return audio ? "audio_in" : image ? "image_in" : "input";
  if (/output|\bout(p|pt)?\b|completion|response/.test(words))
    return audio ? "audio_out" : image ? "image_out" : "output";
  return undefined;
}

/** Returns the number of single units in a unit of the bill: "1K tokens", "1M", "1 Million". */
export function scaleOf(unit: string): bigint {
  const [, count = "1", factor = ""] =
    /^\s*([\d,]+)?\s*(k|m|thousand|million)?\b/i.exec(unit) ?? [];
  const by =
    { k: 1_000n, thousand: 1_000n, m: 1_000_000n, million: 1_000_000n }[factor.toLowerCase()] ?? 1n;
  return BigInt(count.replaceAll(",", "")) * by;
}

const READERS: Readonly<Record<CloudExport, (row: CsvRow) => PartialLine | undefined>> = {
  aws(row) {
    const product = columnOf(row, "product_product_name", "product/ProductName") ?? "";
    const code = columnOf(row, "line_item_product_code", "lineItem/ProductCode") ?? "";
    const usageType = columnOf(row, "line_item_usage_type", "lineItem/UsageType") ?? "";
    const text =
      columnOf(row, "line_item_line_item_description", "lineItem/LineItemDescription") ?? usageType;
    if (!/bedrock/i.test(`${code} ${product} ${usageType}`)) return undefined;
    const type = columnOf(row, "line_item_line_item_type", "lineItem/LineItemType") ?? "Usage";
    const isUsage = type === "Usage" || type === "DiscountedUsage";
    requireUsd(columnOf(row, "line_item_currency_code", "lineItem/CurrencyCode"));
    // A marketplace product is a model, and counts in millions. Other models are in the usage type.
    const isMarketplace = usageType.includes("MP:") || / Edition\)/.test(product);
    const unit = isUsage ? unitOf(usageType) : undefined;
    const amount = columnOf(row, "line_item_usage_amount", "lineItem/UsageAmount");
    const per = columnOf(row, "pricing_unit", "pricing/unit") ?? "";
    const scale = /million/i.test(text) && isMarketplace ? 1_000_000n : scaleOf(per);
    return {
      day: (columnOf(row, "line_item_usage_start_date", "lineItem/UsageStartDate") ?? "").slice(
        0,
        10,
      ),
      model: !isUsage ? undefined : isMarketplace ? product : modelOfUsageType(usageType),
      project: columnOf(row, "line_item_usage_account_id", "lineItem/UsageAccountId"),
      key: undefined,
      unit,
      count: unit !== undefined && amount !== undefined ? parseCount(amount) * scale : undefined,
      pico: parsePico(columnOf(row, "line_item_unblended_cost", "lineItem/UnblendedCost") ?? "0"),
      description: `${type} ${text}`,
    };
  },
  google(row) {
    const service = columnOf(row, "service.description", "service_description") ?? "";
    if (!/vertex|gemini|generative/i.test(service)) return undefined;
    const sku = columnOf(row, "sku.description", "sku_description") ?? "";
    const isRegular = (columnOf(row, "cost_type") ?? "regular") === "regular";
    const unit = isRegular ? unitOf(sku) : undefined;
    const amount = columnOf(row, "usage.amount", "usage_amount");
    const rate = columnOf(row, "currency_conversion_rate") ?? "1";
    return {
      day: (columnOf(row, "usage_start_time") ?? "").slice(0, 10),
      model: isRegular ? modelOfSku(sku) : undefined,
      project: columnOf(row, "project.id", "project_id"),
      key: undefined,
      unit,
      count: unit !== undefined && amount !== undefined ? parseCount(amount) : undefined,
      pico: inUsd(parsePico(columnOf(row, "cost") ?? "0"), rate),
      description: sku,
    };
  },
  azure(row) {
    const category = columnOf(row, "meterCategory") ?? "";
    const meter = columnOf(row, "meterName") ?? "";
    const sub = columnOf(row, "meterSubCategory") ?? "";
    if (!/openai|foundry|cognitive|ai services/i.test(`${category} ${sub}`)) return undefined;
    const isUsage = (columnOf(row, "chargeType") ?? "Usage") === "Usage";
    const unit = isUsage ? unitOf(meter) : undefined;
    const quantity = columnOf(row, "quantity");
    const usd = columnOf(row, "costInUsd");
    if (usd === undefined) requireUsd(columnOf(row, "billingCurrency", "billingCurrencyCode"));
    return {
      day: toIsoDay(columnOf(row, "date") ?? ""),
      model: isUsage ? modelOfMeter(meter) : undefined,
      project: columnOf(row, "SubscriptionId", "subscriptionGuid"),
      key: undefined,
      unit,
      count:
        unit !== undefined && quantity !== undefined
          ? parseCount(quantity) * scaleOf(columnOf(row, "unitOfMeasure") ?? "")
          : undefined,
      pico: parsePico(usd ?? columnOf(row, "costInBillingCurrency") ?? "0"),
      description: meter,
    };
  },
};

/** Returns the model of a usage type, such as "USE1-NovaLite-input-tokens". */
const modelOfUsageType = (usageType: string): string | undefined =>
  /^(?:[A-Z]{3,4}\d?-)?(.+?)-(?:input|output|cache|text|batch|cross|priority|flex)/i.exec(
    usageType,
  )?.[1];

/** Returns the model of a SKU, such as "Gemini 2.5 Flash GA Text Input - Predictions". */
const modelOfSku = (sku: string): string | undefined =>
  /^(?:Vertex AI:? )?((?:Gemini|Claude|Imagen|Veo) [\d.]*(?: ?(?:Pro|Flash|Lite|Opus|Sonnet|Haiku|Fast|Ultra|[\d.]+))*)/i
    .exec(sku)?.[1]
    ?.trim();

/** Returns the model of a meter, such as "gpt-4o-0806-Inp-glbl Tokens". */
const modelOfMeter = (meter: string): string | undefined =>
  /^(.+?)[ -](?:cached|cachd|cchd|inp|input|out|outp|outpt|output|batch|glbl|text|audio|image)\b/i.exec(
    meter,
  )?.[1];

/** Azure exports dates as 11/27/2026 or as ISO dates. */
function toIsoDay(date: string): string {
  const [, month, day, year] = /^(\d{2})\/(\d{2})\/(\d{4})/.exec(date) ?? [];
  return year === undefined ? date.slice(0, 10) : `${year}-${month}-${day}`;
}

/** Converts an amount to US dollars. `rate`: units of the currency per US dollar. */
function inUsd(pico: bigint, rate: string): bigint {
  const per = parsePico(rate);
  return per === 0n ? pico : (pico * 1_000_000_000_000n) / per;
}

function requireUsd(currency: string | undefined): void {
  if (currency !== undefined && currency.toUpperCase() !== "USD")
    throw new Error(`the file has costs in ${currency}, and only US dollars are supported`);
}
