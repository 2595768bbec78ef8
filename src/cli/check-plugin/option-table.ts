// Generates the option table of a plugin's README from its schema, so that the two cannot differ.
import type { Definition } from "../../plugin/define.ts";

interface OptionSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: OptionSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly "x-secret"?: boolean;
}

const BEGIN_MARKER = "<!-- options -->";
const END_MARKER = "<!-- /options -->";

/** Returns the lines between the markers. A package may contain several plugins. */
function optionTable(definitions: readonly Definition[]): string {
  const rows = definitions.flatMap((definition) => [
    ...optionRows(definition.options),
    ...optionRows("credential" in definition ? definition.credential : undefined),
  ]);
  if (rows.length === 0) return "This plugin has no options.";
  return ["| option | type | default | description |", "|---|---|---|---|", ...rows].join("\n");
}

function optionRows(schema: unknown): string[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, OptionSchema>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, one]) => {
    const otherwise = required.includes(name)
      ? "must be given"
      : one.default === undefined
        ? "–"
        : `\`${JSON.stringify(one.default)}\``;
    const secret = one["x-secret"] ? " Secret: set it as `${env:…}`." : "";
    const said = `${one.description ?? ""}.${secret}`.replaceAll("|", "\\|").replaceAll("\n", " ");
    return `| \`${name}\` | ${formatType(one)} | ${otherwise} | ${said} |`;
  });
}

function formatType({ type, enum: values, items }: OptionSchema): string {
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const types = [type ?? "any"].flat();
  return types
    .map((one) => (one === "array" && items ? `list of ${formatType(items)}` : one))
    .join(" or ");
}

/** Returns the page with the current table, or undefined if the page has no markers. */
export function updateOptionTable(
  page: string,
  definitions: readonly Definition[],
): string | undefined {
  const from = page.indexOf(BEGIN_MARKER);
  const to = page.indexOf(END_MARKER, from);
  if (from < 0 || to < 0) return undefined;
  return `${page.slice(0, from + BEGIN_MARKER.length)}\n${optionTable(definitions)}\n${page.slice(to)}`;
}
