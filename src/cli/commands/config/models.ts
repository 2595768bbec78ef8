import type { Listing } from "../../../catalog/catalog.ts";
import { withIsoDates } from "../../../catalog/list-refresher.ts";
import type { FactSource } from "../../../catalog/merge-facts.ts";
import type {
  ExplainedModel,
  ExplainedName,
  ExplainedFact,
} from "../../../admin/commands/model-commands.ts";
import type { AcceptedPrices, PriceDiff } from "../../../admin/commands/price-commands.ts";
import { printPriceDiff } from "../../format/reports/price-diff.ts";
import type { GatewayStatus } from "../../../runtime/gateway-api.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import type { EffectivePolicy, Price, PriceLine } from "../../../model/facts.ts";
import type { Json } from "../../../model/values.ts";
import {
  type CliCommand,
  type CliInput,
  createCommandGroup,
  EXIT_CODES,
  type Subcommand,
} from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { alignColumns, formatTime, paint, printRemark, print } from "../../format/terminal.ts";
import { UNITS, type Unit } from "../../../model/usage.ts";

const remarks = { config: "No gateway is running. From gateway.yaml and saved model lists:" };

const refreshLists = gatewayCommand<Pick<GatewayStatus, "modelLists">>("models.refresh", {
  toJson: (answer, given) => ({ modelLists: refreshedLists(answer, given).map(withIsoDates) }),
  print: (answer, given) => printLists(refreshedLists(answer, given)),
  exitCode: (answer, given) =>
    refreshedLists(answer, given).some(({ lastError }) => lastError)
      ? EXIT_CODES.failed
      : EXIT_CODES.ok,
});

const refresh: Subcommand = {
  ...refreshLists,
  run: (given) =>
    refreshLists
      .run(given)
      .catch((error: unknown) =>
        getFault(error)?.code === "not_running"
          ? fail(
              "unavailable",
              `${getFault(error)!.message} Model lists are refreshed only by a running gateway. Start one with: tollgate serve`,
              { code: "not_running" },
            )
          : Promise.reject(error),
      ),
};

export const command: CliCommand = createCommandGroup(
  "models",
  "Lists and explains models. The default command is list.",
  {
    list: gatewayCommand<{ readonly models: readonly Listing[] }>("models.list", {
      remarks,
      print: ({ models }) => printModels(models),
    }),
    explain: gatewayCommand<ExplainedName>("models.explain", {
      remarks,
      print: (answer) => print(formatModels(answer)),
      exitCode: ({ models }) =>
        models.some(({ listed }) => listed) ? EXIT_CODES.ok : EXIT_CODES.failed,
    }),
    refresh,
    diff: gatewayCommand<PriceDiff>("models.diff", {
      print: printPriceDiff,
      exitCode: ({ held, changes }) =>
        [...held, ...changes].some(({ effect }) => effect === "held")
          ? EXIT_CODES.failed
          : EXIT_CODES.ok,
    }),
    accept: gatewayCommand<AcceptedPrices>("models.accept", {
      print: ({ accepted }) =>
        accepted.length === 0
          ? printRemark("No such price waits for approval. Run tollgate models diff.")
          : print(accepted.map(({ model }) => `${model} accepted`).join("\n")),
    }),
  },
  "list",
);

function printModels(models: readonly Listing[]): void {
  if (models.length === 0) return printRemark("No models match.");
  print(
    alignColumns([
      ["model", "operation", "context", "price per million tokens", "retires"].map((title) =>
        paint("gray", title),
      ),
      ...models.map(({ id, provider, operation, limits, price, retires }) => [
        id,
        operation,
        limits?.context?.toLocaleString("en") ?? "",
        // An alias has only the facts on which all its models agree.
        price || id.startsWith(`${provider}/`)
          ? formatPriceBrief(price)
          : "price of the served model",
        retires === undefined ? "" : paint("yellow", retires.slice(0, 10)),
      ]),
    ]),
  );
}

const refreshedLists = ({ modelLists }: Pick<GatewayStatus, "modelLists">, given: CliInput) => {
  const [provider] = given.positionals;
  return modelLists.filter((list) => provider === undefined || list.provider === provider);
};

function printLists(lists: GatewayStatus["modelLists"]): void {
  if (lists.length === 0)
    return printRemark(
      "No provider has a model list to refresh. Only built-in and configured models are known.",
    );
  print(
    alignColumns(
      lists.map(({ provider, credential, modelCount, lastSuccessAt, lastError }) => [
        provider,
        paint("gray", credential),
        modelCount === undefined ? "not known yet" : plural(modelCount, "model"),
        lastSuccessAt === undefined ? "" : `updated ${formatTime(lastSuccessAt)}`,
        lastError ? paint("red", lastError.message) : paint("green", "fresh"),
      ]),
    ),
  );
}

function formatModels({ name, models, suggestions }: ExplainedName): string {
  const [only] = models;
  const alias =
    models.length === 1 && only!.id === name
      ? []
      : [`${paint("bold", name)} is an alias of ${models.map(({ id }) => id).join(", then ")}`];
  const nearby = suggestions.length > 0 ? [`Similar names: ${suggestions.join(", ")}`] : [];
  return [...alias, ...models.map(formatModel), ...nearby].join("\n\n");
}

function formatModel(of: ExplainedModel): string {
  const { id, facts, policy, example, retirement } = of;
  const operation = facts.find(({ field }) => field === "operation");
  const rows: (readonly [field: string, source: string, words: string])[] = [
    ["operation", operation ? formatSource(operation.source) : "", formatExistence(of)],
    ...facts.filter(({ field }) => field !== "operation").flatMap(factRows),
    [
      "example cost",
      "",
      example.usd === null
        ? UNPRICED_TEXT
        : `${example.description}: ${formatExampleCost(example)}`,
    ],
    ...(retirement
      ? [["retires", "", paint("yellow", formatRetirement(retirement))] as const]
      : []),
    ...(policy ? [["data policy", "", formatRetention(policy)] as const] : []),
  ];
  const table = rows.map(([field, source, words]) => [
    paint("gray", field),
    paint("gray", source),
    words,
  ]);
  return `${paint("bold", id)}\n${alignColumns(table, "  ")}`;
}

const UNPRICED_TEXT = "unknown: calls are unpriced, and keys with a budget are rejected";

const formatExistence = ({ operation, listed, requiresListing }: ExplainedModel): string =>
  listed
    ? operation
    : paint(
        "yellow",
        requiresListing
          ? `${operation}, not in any model list: rejected until a list has it`
          : "not in any model list: requests are forwarded as chat",
      );

function factRows({ field, value, source }: ExplainedFact): [string, string, string][] {
  if (field !== "price") return [[field, formatSource(source), formatValue(value)]];
  return priceRows(value as unknown as Price).map(([name, words], i) => [
    name,
    i === 0 ? formatSource(source) : "",
    words,
  ]);
}

function formatValue(value: Json): string {
  if (Array.isArray(value)) return value.map(formatValue).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return value.toLocaleString("en");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Formats the source of a fact and the time at which the source first reported it. */
function formatSource({ from, at = "", credential, pricedAs }: FactSource): string {
  const source = {
    operator: "gateway.yaml",
    feed: `price feed, ${at.slice(0, 16).replace("T", " ")}`,
    live: `list${credential === "default" ? "" : ` of ${credential}`}, ${at.slice(0, 16).replace("T", " ")}`,
    shipped: `built-in, ${at}`,
  }[from];
  return pricedAs === undefined ? source : `${source}, as ${pricedAs}`;
}

function formatExampleCost({ usd, lines }: ExplainedModel["example"]): string {
  if (usd === "0") return "free";
  const parts = lines.map((line) => `${line.count.toLocaleString("en")} ${line.unit} $${line.usd}`);
  return `${paint("bold", `$${usd}`)}${parts.length > 1 ? ` (${parts.join(" + ")})` : ""}`;
}

const formatRetirement = ({ on, days }: NonNullable<ExplainedModel["retirement"]>): string =>
  `${on.slice(0, 10)}, ${days > 0 ? `in ${plural(days, "day")}` : "already retired"}`;

const RETENTION_LABELS = {
  zero: "none",
  until_deleted: "until deleted",
  unknown: "unknown",
} as const;

function formatRetention({ retention, reasons }: EffectivePolicy): string {
  const how =
    retention.kind === "days"
      ? plural(retention.days, "day")
      : retention.kind === "memory"
        ? "in memory"
        : RETENTION_LABELS[retention.kind];
  return reasons.length > 0 ? `${how} (${reasons.join(", ")})` : how;
}

// Formats prices for people who compare them.

/** Labels of units. All other units are shown by their own names. */
const UNIT_LABELS: { readonly [unit in Unit]?: string } = {
  input: "in",
  output: "out",
  cache_read: "cache read",
  cache_read_audio: "audio cache read",
  cache_read_image: "image cache read",
  image_in: "image input",
  image_out: "image output",
  audio_in: "audio input",
  audio_out: "audio output",
  images: "per image",
  megapixels: "per megapixel",
  searches: "per search",
  fetches: "per page fetch",
  file_searches: "per file search",
  map_searches: "per map search",
  code_sessions: "per code session",
  tool_runs: "per run of another tool",
  seconds: "per second",
  requests: "per request",
};
/** Units in the short form of a price. */
const MAIN_UNITS: readonly Unit[] = ["input", "output", "image_out", "images", "megapixels"];

const isFree = ({ lines }: Price): boolean =>
  UNITS.every((unit) => lines.some((l) => l.unit === unit && /^[0.]+$/.test(l.usd)));

/** Formats a price briefly: "$1.10 in, $4.40 out". Token prices are per million. */
function formatPriceBrief(price: Price | undefined): string {
  if (!price) return "unpriced";
  if (isFree(price)) return "free";
  const lines = price.lines.filter((l) => MAIN_UNITS.includes(l.unit) && l.variant === undefined);
  return lines.length === 0 ? "variable" : lines.map(formatPriceLine).join(", ");
}

/** Returns the whole price, with a row for each condition that has its own rates. */
function priceRows(price: Price): readonly (readonly [name: string, words: string])[] {
  if (isFree(price)) return [["price", "free"]];
  const rows: [string, string][] = [["price", formatRates(price.lines)]];
  for (const { input, lines, tiers = {} } of price.over ?? []) {
    const above = `above ${input.toLocaleString("en")} in`;
    if (lines.length > 0) rows.push([above, formatRates(lines)]);
    for (const [tier, raised] of Object.entries(tiers))
      rows.push([`${above}, tier ${tier}`, formatRates(raised)]);
  }
  for (const [tier, lines] of Object.entries(price.tiers ?? {}))
    rows.push([`tier ${tier}`, formatRates(lines)]);
  for (const { when, by } of price.multipliers ?? [])
    rows.push([Object.entries(when).flat().join(" "), `tokens by ${by}`]);
  const { from, until, hours, otherwise } = price;
  const holds = [
    from && `from ${from}`,
    until && `until ${until}`,
    hours && `${hours.from} to ${hours.to} UTC`,
  ];
  if (holds.some(Boolean)) rows.push(["valid", holds.filter(Boolean).join(", ")]);
  if (otherwise)
    rows.push(...priceRows(otherwise).map(([k, v]) => [`else ${k}`, v] as [string, string]));
  return rows;
}

const formatRates = (lines: readonly PriceLine[]): string =>
  `${lines.map(formatPriceLine).join(", ")}${lines.some(({ per }) => per !== 1) ? "; token prices are per million" : ""}`;

function formatPriceLine({ unit, usd, variant = {} }: PriceLine): string {
  const particular = [variant.first && "the first", variant.quality, variant.size].filter(Boolean);
  const amount = /\.\d$/.test(usd) ? `${usd}0` : usd;
  return `$${amount} ${UNIT_LABELS[unit] ?? unit}${particular.length > 0 ? ` (${particular.join(" ")})` : ""}`;
}
