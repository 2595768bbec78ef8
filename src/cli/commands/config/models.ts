import type { Listing } from "../../../catalog/listing.ts";
import { withIsoDates } from "../../../catalog/list-refresher.ts";
import type { FactSource } from "../../../catalog/merge-facts.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import type {
  ExplainedModel,
  ExplainedName,
  ExplainedFact,
} from "../../../admin/commands/model-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { startDryRun } from "../../../server/dry-run.ts";
import type { GatewayStatus } from "../../../runtime/gateway-api.ts";
import { plural } from "../../../lib/text.ts";
import { fail, getFault } from "../../../model/error.ts";
import type { EffectivePolicy, Price } from "../../../model/facts.ts";
import { BUILT_IN_OPERATIONS } from "../../../model/operations/built-in-operations.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { askRunningGateway } from "../../support/gateway-or-file.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import {
  configFile,
  loadGatewayConfig,
  configName,
  quietLog,
  findStateDir,
} from "../../support/load-config.ts";
import { formatPriceBrief, priceRows } from "../../format/price-output.ts";
import {
  alignColumns,
  formatTime,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

const WHERE_TEXT = "Uses the running gateway, or gateway.yaml if no gateway is running.";

const subcommands: Readonly<Record<string, Subcommand>> = {
  list: {
    usage: "models [list] [options]",
    summary: COMMAND_SPECS["models.list"].summary,
    description: `Lists models with their prices. ${WHERE_TEXT}`,
    options: {
      operation: {
        placeholder: "operation",
        description: `Operation: ${[...BUILT_IN_OPERATIONS.keys()].join(", ")}, or one that a package adds`,
      },
      provider: { placeholder: "name", description: "Provider to list" },
      zdr: {
        placeholder: "level",
        description: "Only models with zero data retention: required or strict",
      },
      ...GATEWAY_OPTIONS,
    },
    examples: ["tollgate models --operation image", "tollgate models list --provider demo --json"],
    run: list,
  },
  explain: {
    usage: "models explain <model> [options]",
    summary: COMMAND_SPECS["models.explain"].summary,
    description:
      "Explains a model: each fact with its source, the price of a request, and the " +
      "retirement date. " +
      WHERE_TEXT,
    options: GATEWAY_OPTIONS,
    positionals: { least: 1, most: 1 },
    examples: ["tollgate models explain demo/echo --json"],
    run: (given) => explain(given, given.positionals[0]!),
  },
  refresh: {
    usage: "models refresh [provider] [options]",
    summary: COMMAND_SPECS["models.refresh"].summary,
    description:
      "Refreshes the model lists of all providers, or of one provider. Needs a running " +
      "gateway.",
    options: GATEWAY_OPTIONS,
    positionals: { least: 0, most: 1 },
    examples: ["tollgate models refresh openai"],
    run: (given) => refresh(given, given.positionals[0]),
  },
};

export const command: CliCommand = createCommandGroup(
  "models",
  "Lists and explains models. The default command is list.",
  subcommands,
  "list",
);

async function list(given: CliInput): Promise<number> {
  const input = {
    operation: given.getText("operation"),
    provider: given.getText("provider"),
    privacy: given.getText("zdr"),
  };
  const { models } = (await askGatewayOrFile(given, "models.list", input)) as unknown as {
    models: Listing[];
  };
  if (given.json) printJson({ models });
  else if (models.length === 0) printRemark("No models match.");
  else
    print(
      alignColumns([
        ["model", "operation", "context", "price per million tokens", "retires"].map((title) =>
          paint("gray", title),
        ),
        ...models.map(({ id, provider, operation, limits, price, retires }) => [
          id,
          operation,
          limits?.context?.toLocaleString("en") ?? "",
          // An alias has only the facts on which all of its models agree.
          price || id.startsWith(`${provider}/`)
            ? formatPriceBrief(price)
            : "price of the served model",
          retires === undefined ? "" : paint("yellow", retires.slice(0, 10)),
        ]),
      ]),
    );
  return EXIT_CODES.ok;
}

async function explain(given: CliInput, model: string): Promise<number> {
  const answer = (await askGatewayOrFile(given, "models.explain", {
    model,
  })) as unknown as ExplainedName;
  if (given.json) printJson(answer);
  else print(formatModels(answer));
  return answer.models.some(({ listed }) => listed) ? EXIT_CODES.ok : EXIT_CODES.failed;
}

async function refresh(given: CliInput, provider: string | undefined): Promise<number> {
  const status = (await callControl(await findStateDir(given), "models.refresh", {
    provider,
  }).catch((error: unknown) =>
    getFault(error)?.code === "not_running"
      ? fail(
          "unavailable",
          `${getFault(error)!.message} Model lists are refreshed only by a running gateway. Start one with: tollgate serve`,
          { code: "not_running" },
        )
      : Promise.reject(error),
  )) as unknown as GatewayStatus;
  const lists = status.modelLists.filter((l) => provider === undefined || l.provider === provider);
  if (given.json) printJson({ modelLists: lists.map(withIsoDates) });
  else if (lists.length === 0)
    printRemark(
      "No provider has a model list to refresh. Only built-in and configured models " +
        "are known.",
    );
  else
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
  return lists.some(({ lastError }) => lastError) ? EXIT_CODES.failed : EXIT_CODES.ok;
}

/**
 * Queries the running gateway. If none runs, uses gateway.yaml and the model lists that its
 * providers returned last.
 */
async function askGatewayOrFile(
  given: CliInput,
  name: "models.list" | "models.explain",
  input: JsonObject,
): Promise<Json> {
  const live = await askRunningGateway(given, name, input);
  if (live) return live.answer;
  const file = configFile(given);
  const loaded = await loadGatewayConfig(file);
  const rehearsed =
    loaded.config && (await startDryRun({ loaded, config: loaded.config, ...quietLog() }));
  if (!rehearsed || "problems" in rehearsed)
    return fail("invalid", `${configName(file)} has errors. Run tollgate check for details.`);
  await using rehearsal = rehearsed;
  printRemark(
    paintRemark("gray", "No gateway is running. From gateway.yaml and saved model lists:"),
  );
  return (await rehearsal.commands[name](input)) as Json;
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
      "costs",
      "",
      example.usd === null
        ? UNPRICED_TEXT
        : `${example.description}: ${formatExampleCost(example)}`,
    ],
    ...(retirement
      ? [["retires", "", paint("yellow", formatRetirement(retirement))] as const]
      : []),
    ...(policy ? [["keeps", "", formatRetention(policy)] as const] : []),
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

/** Formats the source of a fact and the time since when the source has reported it. */
function formatSource({ from, at = "", credential, pricedAs }: FactSource): string {
  const source = {
    operator: "gateway.yaml",
    live: `list${credential === "default" ? "" : ` of ${credential}`}, ${at.slice(0, 16).replace("T", " ")}`,
    shipped: `shipped, ${at}`,
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
