// What an operator may set, as the table of a README: written from the schema, so that it is never another one.
import type { Definition } from "../../plugin/define.ts";

interface Shown {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: Shown;
  readonly default?: unknown;
  readonly description?: string;
  readonly "x-secret"?: boolean;
}

const BEGIN = "<!-- options -->";
const END = "<!-- /options -->";

/** The lines between the marks. A package may bring several plugins. */
function optionTable(definitions: readonly Definition[]): string {
  const rows = definitions.flatMap((definition) => [
    ...rowsOf(definition.options),
    ...rowsOf("credential" in definition ? definition.credential : undefined),
  ]);
  if (rows.length === 0) return "It takes no options.";
  return ["| option | type | if absent | what it says |", "|---|---|---|---|", ...rows].join("\n");
}

function rowsOf(schema: unknown): string[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, Shown>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, one]) => {
    const otherwise = required.includes(name)
      ? "must be given"
      : one.default === undefined
        ? "–"
        : `\`${JSON.stringify(one.default)}\``;
    const secret = one["x-secret"] ? " A secret: give it as `${env:…}`." : "";
    const said = `${one.description ?? ""}.${secret}`.replaceAll("|", "\\|").replaceAll("\n", " ");
    return `| \`${name}\` | ${typeOf(one)} | ${otherwise} | ${said} |`;
  });
}

function typeOf({ type, enum: values, items }: Shown): string {
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const types = [type ?? "any"].flat();
  return types
    .map((one) => (one === "array" && items ? `list of ${typeOf(items)}` : one))
    .join(" or ");
}

/** A page with the table as it has to be; undefined where it has no marks for one. */
export function withTable(page: string, definitions: readonly Definition[]): string | undefined {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END, from);
  if (from < 0 || to < 0) return undefined;
  return `${page.slice(0, from + BEGIN.length)}\n${optionTable(definitions)}\n${page.slice(to)}`;
}
