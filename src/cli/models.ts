import type { Listing } from "../catalogue/listing.ts";
import { datedLine } from "../catalogue/refresh.ts";
import type { FactSource } from "../catalogue/merge.ts";
import { askControl } from "../gateway/control/asking.ts";
import type { ExplainedModel, ExplainedName, Fact } from "../gateway/control/model-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { rehearse } from "../gateway/rehearse.ts";
import type { Status } from "../gateway/types.ts";
import { plural } from "../lib/text.ts";
import { fail, faultOf } from "../model/error.ts";
import type { EffectivePolicy, Price } from "../model/facts.ts";
import { OWN_WORKS } from "../model/own-works.ts";
import type { Json, JsonObject } from "../model/values.ts";
import { askLive } from "./asking.ts";
import { type CliCommand, type CliInput, EXIT, group, type Part, PLACE } from "./command.ts";
import { configFile, load, nameOf, quietLog, stateDirOf } from "./loading.ts";
import { briefly, inFull } from "./price.ts";
import { columns, moment, paint, paintRemark, remark, say, sayJson } from "./terminal.ts";

const WHERE = "Asks the running gateway; without one, the file.";

const parts: Readonly<Record<string, Part>> = {
  list: {
    usage: "models [list] [options]",
    summary: COMMANDS["models.list"].summary,
    about: `Lists the models that exist, with their prices. ${WHERE}`,
    options: {
      kind: { value: "kind", about: `${[...OWN_WORKS.keys()].join(", ")}, or what a package adds` },
      provider: { value: "name", about: "of one provider" },
      zdr: { value: "level", about: "what keeps nothing: required or strict" },
      ...PLACE,
    },
    examples: ["tollgate models --kind image", "tollgate models list --provider demo --json"],
    run: list,
  },
  explain: {
    usage: "models explain <model> [options]",
    summary: COMMANDS["models.explain"].summary,
    about:
      "Explains a model: each fact with its source, what a request costs, when it retires. " +
      WHERE,
    options: PLACE,
    words: { least: 1, most: 1 },
    examples: ["tollgate models explain demo/echo --json"],
    run: (given) => explain(given, given.words[0]!),
  },
  refresh: {
    usage: "models refresh [provider] [options]",
    summary: COMMANDS["models.refresh"].summary,
    about: "Asks providers for their lists now, or one of them. Needs a running gateway.",
    options: PLACE,
    words: { least: 0, most: 1 },
    examples: ["tollgate models refresh openai"],
    run: (given) => refresh(given, given.words[0]),
  },
};

export const command: CliCommand = group(
  "models",
  "Lists and explains the models that exist. Without a command it lists them.",
  parts,
  "list",
);

async function list(given: CliInput): Promise<number> {
  const input = {
    kind: given.text("kind"),
    provider: given.text("provider"),
    privacy: given.text("zdr"),
  };
  const { models } = (await ask(given, "models.list", input)) as unknown as { models: Listing[] };
  if (given.json) sayJson({ models });
  else if (models.length === 0) remark("There are no such models.");
  else
    say(
      columns([
        ["model", "kind", "context", "price, tokens by the million", "retires"].map((title) =>
          paint("gray", title),
        ),
        ...models.map(({ id, provider, kind, limits, price, retires }) => [
          id,
          kind,
          limits?.context?.toLocaleString("en") ?? "",
          // Of an alias only the facts are known on which all models behind it agree.
          price || id.startsWith(`${provider}/`) ? briefly(price) : "as it is answered",
          retires === undefined ? "" : paint("yellow", retires.slice(0, 10)),
        ]),
      ]),
    );
  return EXIT.fine;
}

async function explain(given: CliInput, model: string): Promise<number> {
  const answer = (await ask(given, "models.explain", { model })) as unknown as ExplainedName;
  if (given.json) sayJson(answer);
  else say(inWords(answer));
  return answer.models.some(({ listed }) => listed) ? EXIT.fine : EXIT.failed;
}

async function refresh(given: CliInput, provider: string | undefined): Promise<number> {
  const status = (await askControl(await stateDirOf(given), "models.refresh", { provider }).catch(
    (error: unknown) =>
      faultOf(error)?.code === "not_running"
        ? fail(
            "unavailable",
            `${faultOf(error)!.message} Lists are asked for by a running gateway alone: tollgate serve.`,
            { code: "not_running" },
          )
        : Promise.reject(error),
  )) as unknown as Status;
  const lists = status.lists.filter((l) => provider === undefined || l.provider === provider);
  if (given.json) sayJson({ lists: lists.map(datedLine) });
  else if (lists.length === 0)
    remark("No provider has a list to ask for: what is known of them is what exists.");
  else
    say(
      columns(
        lists.map(({ provider, credential, count, lastOk, lastError }) => [
          provider,
          paint("gray", credential),
          count === undefined ? "not known yet" : plural(count, "model"),
          lastOk === undefined ? "" : `said ${moment(lastOk)}`,
          lastError ? paint("red", lastError.message) : paint("green", "fresh"),
        ]),
      ),
    );
  return lists.some(({ lastError }) => lastError) ? EXIT.failed : EXIT.fine;
}

/** The running gateway, or what its file says and its providers last said. */
async function ask(
  given: CliInput,
  name: "models.list" | "models.explain",
  input: JsonObject,
): Promise<Json> {
  const live = await askLive(given, name, input);
  if (live) return live.answer;
  const file = configFile(given);
  const loaded = await load(file);
  const rehearsed =
    loaded.config && (await rehearse({ loaded, config: loaded.config, ...quietLog() }));
  if (!rehearsed || "problems" in rehearsed)
    return fail("invalid", `${nameOf(file)} has errors, see tollgate check.`);
  await using rehearsal = rehearsed;
  remark(paintRemark("gray", "No gateway is running; as far as the file and earlier lists say:"));
  return (await rehearsal.commands[name](input)) as Json;
}

function inWords({ name, models, near }: ExplainedName): string {
  const [only] = models;
  const alias =
    models.length === 1 && only!.id === name
      ? []
      : [`${paint("bold", name)} stands for ${models.map(({ id }) => id).join(", then ")}`];
  const nearby = near.length > 0 ? [`Near it: ${near.join(", ")}`] : [];
  return [...alias, ...models.map(oneInWords), ...nearby].join("\n\n");
}

function oneInWords(of: ExplainedModel): string {
  const { id, facts, policy, example, retires } = of;
  const kind = facts.find(({ field }) => field === "kind");
  const rows: (readonly [field: string, source: string, words: string])[] = [
    ["kind", kind ? by(kind.source) : "", existence(of)],
    ...facts.filter(({ field }) => field !== "kind").flatMap(rowsOf),
    ["costs", "", example.usd === null ? UNPRICED : `${example.about}: ${bill(example)}`],
    ...(retires ? [["retires", "", paint("yellow", until(retires))] as const] : []),
    ...(policy ? [["keeps", "", kept(policy)] as const] : []),
  ];
  const table = rows.map(([field, source, words]) => [
    paint("gray", field),
    paint("gray", source),
    words,
  ]);
  return `${paint("bold", id)}\n${columns(table, "  ")}`;
}

const UNPRICED = "not known: calls are unpriced, and keys with a budget are refused";

const existence = ({ kind, listed, awaitsList }: ExplainedModel): string =>
  listed
    ? kind
    : paint(
        "yellow",
        awaitsList
          ? `${kind}, and no list has it: it is refused until one does`
          : "no source lists it: as a chat model it is forwarded all the same",
      );

function rowsOf({ field, value, source }: Fact): [string, string, string][] {
  if (field !== "price") return [[field, by(source), plain(value)]];
  return inFull(value as unknown as Price).map(([name, words], i) => [
    name,
    i === 0 ? by(source) : "",
    words,
  ]);
}

function plain(value: Json): string {
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return value.toLocaleString("en");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The source, and since when it says so. */
function by({ from, at = "", credential, as }: FactSource): string {
  const source = {
    operator: "gateway.yaml",
    live: `list${credential === "default" ? "" : ` of ${credential}`}, ${at.slice(0, 16).replace("T", " ")}`,
    shipped: `shipped, ${at}`,
  }[from];
  return as === undefined ? source : `${source}, as ${as}`;
}

function bill({ usd, lines }: ExplainedModel["example"]): string {
  if (usd === "0") return "nothing";
  const parts = lines.map((line) => `${line.count.toLocaleString("en")} ${line.unit} $${line.usd}`);
  return `${paint("bold", `$${usd}`)}${parts.length > 1 ? ` (${parts.join(" + ")})` : ""}`;
}

const until = ({ on, days }: NonNullable<ExplainedModel["retires"]>): string =>
  `${on.slice(0, 10)}, ${days > 0 ? `in ${plural(days, "day")}` : "which has passed"}`;

const KEEPS = { zero: "nothing", until_deleted: "until deleted", unknown: "unknown" } as const;

function kept({ retention, because }: EffectivePolicy): string {
  const how =
    retention.kind === "days"
      ? plural(retention.days, "day")
      : retention.kind === "memory"
        ? "in memory"
        : KEEPS[retention.kind];
  return because.length > 0 ? `${how} (${because.join(", ")})` : how;
}
