import type { Dimension, Sum, Sums } from "../gateway/control/ledger-commands.ts";
import { zoneOf } from "../gateway/control/ledger-names.ts";
import { DIMENSIONS } from "../gateway/control/usage-table.ts";
import { either, nearest, plural, visible } from "../lib/text.ts";
import type { Json } from "../model/values.ts";
import { fail } from "../model/error.ts";
import { inputTokens, outputTokens } from "../model/usage.ts";
import { formatUsd, nanoToDecimal } from "../money/format.ts";
import { type CliCommand, type CliInput, EXIT, type Options, PLACE } from "./command.ts";
import { bar } from "./reports/bars.ts";
import { csvLine, textCell } from "./reports/csv.ts";
import { FOCUS_BY, FOCUS_COLUMNS, focusLine } from "./reports/focus.ts";
import { WHICH, whichOf } from "./since.ts";
import { storeDoor } from "./store.ts";
import { columns, paint, paintRemark, remark, say, sayJson, widthOf } from "./terminal.ts";

/** Conditions beside the key, the account and the time. */
const ONLY = {
  model: "only of this model, as in openai/gpt-5, or as its provider calls it",
  provider: "only of this provider",
  label: "only with this label, as in team=web",
  credential: "only paid by this credential",
  frontend: "only asked at this frontend",
  outcome: "only what ended so, as in ok",
} as const;

const FORMS = ["json", "csv", "focus", "plot"] as const;

export const command: CliCommand = {
  usage: "usage [options]",
  about:
    "Sums up what was used and what it cost. What has no known price is counted and named, never taken for nothing; so is what\n" +
    "had to be estimated.",
  options: {
    ...PLACE,
    by: {
      value: "what",
      about: `key (by default), or several, as in day,model: ${DIMENSIONS.join(", ")}`,
      many: true,
    },
    ...WHICH,
    ...(Object.fromEntries(
      Object.entries(ONLY).map(([name, about]) => [name, { value: "name", about }]),
    ) as Options),
    tz: {
      value: "zone",
      about: "whose days and hours they are, as in Europe/Berlin; UTC by default",
    },
    csv: { about: "print a table for spreadsheets, amounts as decimal dollars" },
    focus: { about: "print charges in the columns of FOCUS 1.2, for finance" },
    plot: { about: "draw what each row cost" },
  },
  examples: [
    "tollgate usage --since 30d",
    "tollgate usage --by day,model --key laptop --json",
    "tollgate usage --focus --since 2026-11-01 --until 2026-12-01 > november.csv",
  ],
  async run(given) {
    const form = formOf(given);
    const zone = zoneOf(given.text("tz"));
    const by = byOf(given, form);
    await using door = await storeDoor(given);
    const only = Object.fromEntries(Object.keys(ONLY).map((name) => [name, given.text(name)]));
    const began = performance.now();
    const sums = (await door.ask("ledger.totals", {
      ...whichOf(given, zone),
      ...only,
      by,
      tz: zone,
    })) as unknown as Sums;
    const ms = Math.round(performance.now() - began);
    const lines: Record<NonNullable<typeof form> | "table", () => void> = {
      json: () =>
        sayJson({
          by,
          tz: zone ?? "UTC",
          rows: sums.rows.map((row) => inJson(row, sums.names)),
          total: inJson(sums.total, {}),
        }),
      csv: () => csv(sums, by),
      focus: () => focus(sums, zone),
      plot: () => plot(sums, by),
      table: () => table(sums, by),
    };
    lines[form ?? "table"]();
    if (form === "json") return EXIT.fine;
    if (sums.rows.length === 0) remark("Nothing was used.");
    if (sums.total.unpriced > 0) remark(paintRemark("yellow", UNPRICED(sums.total.unpriced)));
    remark(paintRemark("gray", `${plural(sums.rows.length, "row")} in ${ms} ms`));
    return EXIT.fine;
  },
};

// oxlint-disable-next-line no-control-regex -- these are meant
const UNPRICED = (calls: number): string =>
  `${plural(calls, "call")} without a known price, not in the cost. tollgate models explain <model> says more.`;

function formOf(given: CliInput): (typeof FORMS)[number] | undefined {
  const [form, other] = FORMS.filter((name) => (name === "json" ? given.json : given.has(name)));
  if (other)
    fail("invalid", `Say one of ${either(FORMS.map((name) => `--${name}`))}: not two.`, {
      code: "usage",
    });
  return form;
}

function noDimension(said: string): never {
  const near = nearest(said, DIMENSIONS);
  const meant = near === undefined ? "" : ` Did you mean "${near}"?`;
  return fail(
    "invalid",
    `--by is one or more of ${DIMENSIONS.join(", ")}, not "${said}".${meant}`,
    {
      code: "usage",
    },
  );
}

function byOf(given: CliInput, form: ReturnType<typeof formOf>): readonly Dimension[] {
  if (form === "focus" && given.text("by") !== undefined)
    fail("invalid", "--focus has rows of its own: leave out --by.", { code: "usage" });
  if (form === "focus") return FOCUS_BY;
  const by = given.texts("by").flatMap((text) => text.split(",").filter(Boolean));
  for (const each of by) if (!DIMENSIONS.includes(each as Dimension)) noDimension(each);
  return by.length === 0 ? ["key"] : (by as Dimension[]);
}

/** A key as people call it, with its id where two are called the same. What a terminal would obey is shown as what it is. */
function nameOf(sum: Sum, dimension: Dimension, names: Sums["names"]): string {
  const said = sum.by[dimension] ?? "";
  const name = dimension === "key" ? (names[said] ?? said) : said;
  const twice = name !== said && Object.values(names).filter((other) => other === name).length > 1;
  return visible(twice ? `${name} (${said})` : name);
}

function table({ rows, total, names }: Sums, by: readonly Dimension[]): void {
  if (rows.length === 0) return;
  say(
    columns([
      [...by, "calls", "in", "out", "cost", ""].map((title) => paint("gray", title)),
      ...rows.map((row) => [...by.map((each) => nameOf(row, each, names) || "-"), ...cells(row)]),
      ...(rows.length > 1 ? [[...by.map((_, i) => (i === 0 ? "all" : "")), ...cells(total)]] : []),
    ]),
  );
}

/** What each row cost, or where nothing did, how many calls it was. */
function plot({ rows, names }: Sums, by: readonly Dimension[]): void {
  const costs = rows.map(({ costNano }) => Number(costNano));
  const free = costs.every((cost) => cost <= 0);
  const sizes = free ? rows.map(({ calls }) => calls) : costs;
  const largest = Math.max(...sizes);
  const labels = rows.map((row) => by.map((each) => nameOf(row, each, names) || "-").join("  "));
  const values = rows.map((row) => (free ? count(row.calls) : formatUsd(BigInt(row.costNano))));
  const [label, value] = [labels, values].map((texts) =>
    Math.max(0, ...texts.map((t) => t.length)),
  );
  const width = Math.max(10, widthOf() - label! - value! - 4);
  for (const [i, size] of sizes.entries())
    say(
      `${labels[i]!.padEnd(label!)}  ${values[i]!.padStart(value!)}  ${paint("cyan", bar(size, largest, width))}`.trimEnd(),
    );
}

const COUNTS = ["calls", "input_tokens", "output_tokens", "usd", "unpriced", "estimated"] as const;

/** What the rows say and no more: a call with two labels is in two of them. */
function csv({ rows, names }: Sums, by: readonly Dimension[]): void {
  const keyed = by.includes("key");
  let text = csvLine([...by, ...(keyed ? ["key_name"] : []), ...COUNTS]);
  for (const row of rows)
    text += csvLine([
      ...by.map((each) => textCell(row.by[each] ?? "")),
      ...(keyed ? [textCell(names[row.by["key"] ?? ""] ?? "")] : []),
      String(row.calls),
      String(inputTokens(row.usage)),
      String(outputTokens(row.usage)),
      nanoToDecimal(BigInt(row.costNano)),
      String(row.unpriced),
      String(row.estimated),
    ]);
  process.stdout.write(text);
}

function focus({ rows, names }: Sums, zone: string | undefined): void {
  let text = csvLine(FOCUS_COLUMNS);
  for (const row of rows) text += csvLine(focusLine(row, names, zone));
  process.stdout.write(text);
}

const cells = (sum: Sum): string[] => [
  count(sum.calls),
  count(inputTokens(sum.usage)),
  count(outputTokens(sum.usage)),
  formatUsd(BigInt(sum.costNano)),
  [
    sum.unpriced > 0 && paint("yellow", `${count(sum.unpriced)} unpriced`),
    sum.estimated > 0 && paint("yellow", `${count(sum.estimated)} estimated`),
  ]
    .filter(Boolean)
    .join(", "),
];

const count = (n: number) => n.toLocaleString("en");

const inJson = (
  { by, calls, usage, costNano, unpriced, estimated }: Sum,
  names: Sums["names"],
): Json => ({
  ...by,
  ...(by["key"] !== undefined && names[by["key"]] !== undefined && { key_name: names[by["key"]]! }),
  calls,
  usage,
  usd: nanoToDecimal(BigInt(costNano)),
  unpriced,
  estimated,
});
