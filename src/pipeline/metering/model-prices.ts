// Which model's price a report is paid at. A provider may answer with another model than the one that was called: a fallback
// of its own, an advisor beside it, or what an alias or a router stands for.
import type { CatalogEntry } from "../../catalog/catalog.ts";
import type { Price } from "../../model/facts.ts";
import type { Opt } from "../../model/values.ts";

/** What was known of a provider's models when a call was reserved. */
export type CatalogModels = ReadonlyMap<string, CatalogEntry>;

/** "claude-opus-5-20260528", "gpt-5-2025-08-07", "claude-opus-5@20260528": the model, as of a day. */
const withoutDate = (model: string): string => model.replace(/[-@]\d{4}-?\d{2}-?\d{2}$/, "");

/**
 * One part of several: the price of its own model, or none. A bill in one piece is the called model's under whatever name
 * the provider answers, unless that is the name of another model with a price, and the operator did not set this one's.
 */
export function findReportPrice(
  reportedModel: Opt<string>,
  called: { model: string; price: Opt<Price>; shelf: CatalogModels; alone: boolean },
): Price | undefined {
  const { model, price, shelf, alone } = called;
  if (reportedModel === undefined || reportedModel === model) return price;
  const listed = shelf.get(reportedModel) ?? shelf.get(withoutDate(reportedModel));
  if (!alone) return withoutDate(reportedModel) === withoutDate(model) ? price : listed?.info.price;
  const isVariant = reportedModel.startsWith(model) || model.startsWith(reportedModel);
  const isSetByOperator = shelf.get(model)?.sources["price"]?.from === "operator";
  return isVariant || isSetByOperator ? price : (listed?.info.price ?? price);
}
