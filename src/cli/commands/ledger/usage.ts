import type { Dimension, UsageSum, UsageSums } from "../../../admin/commands/ledger-commands.ts";
import type { SpendForecast } from "../../../admin/commands/forecast.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import { configFile, findStateDir, requireGatewayConfig } from "../../support/load-config.ts";
import {
  convertSums,
  DOLLAR_VIEW,
  formatAmount,
  openNamedView,
  type CurrencyView,
} from "../../support/currency-view.ts";
import { parseTimeZone } from "../../../admin/commands/ledger-names.ts";
import { DIMENSIONS } from "../../../admin/schema/usage-command-specs.ts";
import { didYouMean, joinWords, plural, escapeControls } from "../../../lib/text.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { fail } from "../../../model/error.ts";
import { inputTokens, outputTokens } from "../../../model/usage.ts";
import { formatUsd, nanoToDecimal } from "../../../money/decimal.ts";
import { type CliCommand, type CliInput, EXIT_CODES } from "../../support/command.ts";
import { describeCommand, readCommandInput } from "../../support/gateway-command.ts";
import { csvLine, textCell } from "../../format/reports/csv.ts";
import { FOCUS_DIMENSIONS, FOCUS_COLUMNS, focusLine } from "../../format/reports/focus-export.ts";
import { openStoreAccess } from "../../support/store-access.ts";
import {
  alignColumns,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
  terminalWidth,
} from "../../format/terminal.ts";

// Partial blocks for bars, from 0 to 7 eighths of a character.
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;
/**
 * Draws a bar whose length is the value's share of the largest value, to an eighth of a character.
 * Every value above 0 is visible.
 */
function drawBar(value: number, largest: number, width: number): string {
  if (!(value > 0) || !(largest > 0)) return "";
  const eighths = Math.max(1, Math.round((Math.min(value, largest) / largest) * width * 8));
  return "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}

const OUTPUT_FORMATS = ["json", "csv", "focus", "plot"] as const;

export const command: CliCommand = {
  ...describeCommand("ledger.totals", {
    omit: ["by"],
    options: {
      by: {
        placeholder: "what",
        description: `Any of ${DIMENSIONS.join(", ")} (default: key)`,
        isRepeatable: true,
      },
      csv: { description: "Write a CSV table with amounts in decimal dollars" },
      focus: { description: "Write charges in FOCUS 1.2 columns" },
      plot: { description: "Draw a cost chart" },
      view: {
        placeholder: "name",
        description: "Show amounts in the currency of a view",
      },
      forecast: { description: "Forecast spend. Needs a running gateway" },
    },
  }),
  async run(given) {
    if (given.has("forecast")) return printForecast(given);
    const form = readFormat(given);
    const zone = parseTimeZone(given.getText("tz"));
    const by = readDimensions(given, form);
    const view = await readView(given);
    await using store = await openStoreAccess(given);
    const began = performance.now();
    const sums = await readSums(store, readCommandInput("ledger.totals", given, ["by"]), {
      by,
      view,
    });
    const ms = Math.round(performance.now() - began);
    const lines: Record<NonNullable<typeof form> | "table", () => void> = {
      json: () =>
        printJson({
          by,
          tz: zone ?? "UTC",
          ...(view && { currency: view.currency, margin: view.margin }),
          rows: sums.rows.map((row) => toJsonRow(row, sums.keyNames)),
          total: toJsonRow(sums.total, {}),
        }),
      csv: () => printCsv(sums, by, view),
      focus: () => printFocus(sums, zone, view),
      plot: () => printPlot(sums, by),
      table: () => printTable(sums, by, view),
    };
    lines[form ?? "table"]();
    if (form === "json") return EXIT_CODES.ok;
    if (sums.rows.length === 0) printRemark("No usage found.");
    if (sums.total.unpriced > 0)
      printRemark(paintRemark("yellow", unpricedText(sums.total.unpriced)));
    printRemark(paintRemark("gray", `${plural(sums.rows.length, "row")} in ${ms} ms`));
    return EXIT_CODES.ok;
  },
};

/** Returns the view that the operator chose. Undefined: US dollars. */
async function readView(given: CliInput): Promise<CurrencyView | undefined> {
  const name = given.getText("view");
  if (name === undefined) return undefined;
  if (given.has("plot"))
    fail("invalid", "--plot and --view cannot be used together.", { code: "usage" });
  const { config } = await requireGatewayConfig(configFile(given));
  return openNamedView(config, name);
}

/** Sums, whose amounts are set if a view is used. */
type ViewedSum = UsageSum & { readonly amount?: bigint };
type ViewedSums = Omit<UsageSums, "rows" | "total"> & {
  readonly rows: readonly ViewedSum[];
  readonly total: ViewedSum;
};

/** With a view, each day is converted at its own rate. */
async function readSums(
  store: Pick<Awaited<ReturnType<typeof openStoreAccess>>, "run">,
  input: JsonObject,
  { by, view }: { readonly by: readonly Dimension[]; readonly view: CurrencyView | undefined },
): Promise<ViewedSums> {
  const read = async (dimensions: readonly Dimension[]) =>
    (await store.run("ledger.totals", { ...input, by: [...dimensions] })) as unknown as UsageSums;
  if (!view) return read(by);
  const daily = await read([...new Set<Dimension>([...by, "day"])]);
  // A call with two labels is in two rows, so the total is not the sum of the rows.
  const days = await read(["day"]);
  const [amount = 0n] = convertSums(days.rows, [], view).map((sum) => sum.amount);
  return {
    ...daily,
    rows: convertSums(daily.rows, by, view),
    total: { ...days.total, amount },
  };
}

// oxlint-disable-next-line no-control-regex -- the control characters are intended
const unpricedText = (calls: number): string =>
  `The cost does not include ${plural(calls, "call")} without a known price. For details, run tollgate models explain <model>.`;

async function printForecast(given: CliInput): Promise<number> {
  const account = given.getText("account");
  const input = account === undefined ? {} : { account };
  const answer = await callControl(await findStateDir(given), "usage.forecast", input);
  const { perDayUsd, days, month, budgets } = answer as unknown as SpendForecast;
  if (given.json) {
    printJson(answer);
    return EXIT_CODES.ok;
  }
  const basis = days === 0 ? "today" : plural(days, "day");
  print(
    alignColumns([
      ["per day", `$${perDayUsd}`, paint("gray", `mean of ${basis}`)],
      ["month so far", `$${month.spentUsd}`, ""],
      ["month projected", `$${month.projectedUsd}`, ""],
    ]),
  );
  if (budgets.length === 0) return EXIT_CODES.ok;
  print(
    alignColumns([
      ["budget", "limit", "used", "per day", "exhausted"].map((title) => paint("gray", title)),
      ...budgets.map((budget) => [
        escapeControls(`${budget.subject} ${budget.name ?? budget.id}`),
        budget.limit,
        `$${budget.usedUsd}`,
        `$${budget.perDayUsd}`,
        budget.exhaustsAt === null
          ? paint("green", "not before it resets")
          : paint("yellow", budget.exhaustsAt.slice(0, 16).replace("T", " ")),
      ]),
    ]),
  );
  return EXIT_CODES.ok;
}

function readFormat(given: CliInput): (typeof OUTPUT_FORMATS)[number] | undefined {
  const [form, other] = OUTPUT_FORMATS.filter((name) =>
    name === "json" ? given.json : given.has(name),
  );
  if (other)
    fail(
      "invalid",
      `Only one of ${joinWords(OUTPUT_FORMATS.map((name) => `--${name}`))} can be used.`,
      {
        code: "usage",
      },
    );
  return form;
}

const failUnknownDimension = (dimension: string): never =>
  fail(
    "invalid",
    `Invalid --by "${dimension}". It must be one or more of ${DIMENSIONS.join(", ")}.${didYouMean(dimension, DIMENSIONS)}`,
    { code: "usage" },
  );

function readDimensions(
  given: CliInput,
  form: ReturnType<typeof readFormat>,
): readonly Dimension[] {
  if (form === "focus" && given.getText("by") !== undefined)
    fail("invalid", "--focus and --by cannot be used together.", { code: "usage" });
  if (form === "focus") return FOCUS_DIMENSIONS;
  const by = given.getTexts("by").flatMap((text) => text.split(",").filter(Boolean));
  for (const each of by) if (!DIMENSIONS.includes(each as Dimension)) failUnknownDimension(each);
  return by.length === 0 ? ["key"] : (by as Dimension[]);
}

/**
 * Returns the name of a group. For keys, the ID is added if two keys have the same name. Control
 * characters are shown escaped.
 */
function groupName(sum: UsageSum, dimension: Dimension, names: UsageSums["keyNames"]): string {
  const value = sum.by[dimension] ?? "";
  const name = dimension === "key" ? (names[value] ?? value) : value;
  const twice = name !== value && Object.values(names).filter((other) => other === name).length > 1;
  return escapeControls(twice ? `${name} (${value})` : name);
}

function printTable(
  { rows, total, keyNames }: ViewedSums,
  by: readonly Dimension[],
  view: CurrencyView | undefined,
): void {
  if (rows.length === 0) return;
  print(
    alignColumns([
      [...by, "calls", "in", "out", view ? view.currency.toLowerCase() : "cost", ""].map((title) =>
        paint("gray", title),
      ),
      ...rows.map((row) => [
        ...by.map((each) => groupName(row, each, keyNames) || "-"),
        ...rowCells(row),
      ]),
      ...(rows.length > 1
        ? [[...by.map((_, i) => (i === 0 ? "all" : "")), ...rowCells(total)]]
        : []),
    ]),
  );
}

/** Plots the cost of each row, or the number of its calls if no row has a cost. */
function printPlot({ rows, keyNames }: UsageSums, by: readonly Dimension[]): void {
  const costs = rows.map(({ costNano }) => Number(costNano));
  const free = costs.every((cost) => cost <= 0);
  const sizes = free ? rows.map(({ calls }) => calls) : costs;
  const largest = Math.max(...sizes);
  const labels = rows.map((row) =>
    by.map((each) => groupName(row, each, keyNames) || "-").join("  "),
  );
  const values = rows.map((row) =>
    free ? formatCount(row.calls) : formatUsd(BigInt(row.costNano)),
  );
  const [label, value] = [labels, values].map((texts) =>
    Math.max(0, ...texts.map((t) => t.length)),
  );
  const width = Math.max(10, terminalWidth() - label! - value! - 4);
  for (const [i, size] of sizes.entries())
    print(
      `${labels[i]!.padEnd(label!)}  ${values[i]!.padStart(value!)}  ${paint("cyan", drawBar(size, largest, width))}`.trimEnd(),
    );
}

const COUNT_COLUMNS = [
  "calls",
  "input_tokens",
  "output_tokens",
  "usd",
  "unpriced",
  "estimated",
] as const;

/** Prints the rows as CSV, without a total: a call with two labels is in two rows. */
function printCsv(
  { rows, keyNames }: ViewedSums,
  by: readonly Dimension[],
  view: CurrencyView | undefined,
): void {
  const keyed = by.includes("key");
  let text = csvLine([
    ...by,
    ...(keyed ? ["key_name"] : []),
    ...COUNT_COLUMNS,
    ...(view ? ["margin_percent", "amount", "currency"] : []),
  ]);
  for (const row of rows)
    text += csvLine([
      ...by.map((each) => textCell(row.by[each] ?? "")),
      ...(keyed ? [textCell(keyNames[row.by["key"] ?? ""] ?? "")] : []),
      String(row.calls),
      String(inputTokens(row.usage)),
      String(outputTokens(row.usage)),
      nanoToDecimal(BigInt(row.costNano)),
      String(row.unpriced),
      String(row.estimated),
      ...(view ? [view.margin, formatAmount(row.amount!), view.currency] : []),
    ]);
  process.stdout.write(text);
}

function printFocus(
  { rows, keyNames }: ViewedSums,
  zone: string | undefined,
  view: CurrencyView = DOLLAR_VIEW,
): void {
  let text = csvLine(FOCUS_COLUMNS);
  for (const row of rows) text += csvLine(focusLine(row, keyNames, { zone, view }));
  process.stdout.write(text);
}

const rowCells = (sum: ViewedSum): string[] => [
  formatCount(sum.calls),
  formatCount(inputTokens(sum.usage)),
  formatCount(outputTokens(sum.usage)),
  sum.amount === undefined ? formatUsd(BigInt(sum.costNano)) : formatAmount(sum.amount),
  [
    sum.unpriced > 0 && paint("yellow", `${formatCount(sum.unpriced)} unpriced`),
    sum.estimated > 0 && paint("yellow", `${formatCount(sum.estimated)} estimated`),
  ]
    .filter(Boolean)
    .join(", "),
];

const formatCount = (n: number) => n.toLocaleString("en");

const toJsonRow = (
  { by, calls, usage, costNano, unpriced, estimated, amount }: ViewedSum,
  names: UsageSums["keyNames"],
): Json => ({
  ...by,
  ...(by["key"] !== undefined && names[by["key"]] !== undefined && { key_name: names[by["key"]]! }),
  calls,
  usage,
  usd: nanoToDecimal(BigInt(costNano)),
  ...(amount !== undefined && { amount: formatAmount(amount) }),
  unpriced,
  estimated,
});
