// Decides which model's price applies to a report. A provider may answer with a model other than
// the one called: its own fallback, an advisor model, or the model behind an alias or a router.
import type { CatalogEntry } from "../../catalog/catalog.ts";
import type { Price } from "../../model/facts.ts";
import type { Opt } from "../../model/values.ts";

/** The provider's models as the catalog listed them when the call was reserved. */
export type CatalogModels = ReadonlyMap<string, CatalogEntry>;

/**
 * Returns the model name without a date. Dated names are "claude-opus-5-20260528",
 * "gpt-5-2025-08-07", or "claude-opus-5@20260528".
 */
const withoutDate = (model: string): string => model.replace(/[-@]\d{4}-?\d{2}-?\d{2}$/, "");

/**
 * Returns the price for a report. If a bill has several parts, each part has the price of its own
 * model, or none. A bill with one part has the price of the called model, whatever name the
 * provider reports. Exception: if the reported name is another model with a price, and the operator
 * did not set the called model's price, the other model's price applies.
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
