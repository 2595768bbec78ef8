// Prints what the price feed would change.
import type {
  ListedChange,
  ListedRate,
  PriceDiff,
} from "../../../admin/commands/price-commands.ts";
import { plural } from "../../../lib/text.ts";
import { alignColumns, paint, paintRemark, print, printRemark } from "../terminal.ts";

export function printPriceDiff({ feed, version, changes, held, truncated }: PriceDiff): void {
  if (!feed) return printRemark("gateway.yaml sets no price feed. Add: prices: { from, key }.");
  const accepted =
    feed.version === undefined ? "none" : `version ${feed.version}, issued ${feed.issued}`;
  printRemark(paintRemark("gray", `Accepted document: ${accepted}. Source: version ${version}.`));
  printChanges("Changes of the new document", changes);
  printChanges("Waiting for approval", held);
  if (changes.length + held.length === 0)
    printRemark("The prices in use are those of the document.");
  const [first] = held;
  if (first) printRemark("To accept them, run tollgate models accept <version>.");
  if (truncated) printRemark(paintRemark("yellow", "Only a part of the last 30 days was counted."));
}

function printChanges(title: string, changes: readonly ListedChange[]): void {
  if (changes.length === 0) return;
  print(paint("bold", title));
  print(
    alignColumns(
      changes.map(({ model, effect, from, rates, lastMonth }) => [
        model,
        paint(effect === "held" ? "yellow" : "gray", effect),
        paint("gray", `from ${from.slice(0, 16).replace("T", " ")}`),
        rates.map(formatRate).join("; "),
        lastMonth.calls === 0
          ? ""
          : `30 days: ${plural(lastMonth.calls, "call")}, $${lastMonth.usd} becomes $${lastMonth.newUsd}`,
      ]),
      "  ",
    ),
  );
}

const formatRate = ({ figure, beforeUsd, afterUsd, percent }: ListedRate): string => {
  const change = percent === null ? "" : ` (${percent}%)`;
  return `${figure} ${beforeUsd ?? "none"} → ${afterUsd ?? "none"}${change}`;
};
