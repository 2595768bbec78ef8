// Names of a new plugin: its name in code and file names, its title on pages, and upper case in
// variables.
import type { PluginKind } from "../../plugin/define.ts";

/**
 * Kinds of plugins that can be created. A row is a provider that consists of data. A protocol comes
 * with a frontend and a provider that use it.
 */
export const TEMPLATE_KINDS = [
  "provider",
  "row",
  "protocol",
  "frontend",
  "middleware",
  "observer",
  "store",
] as const;
export type TemplateKind = (typeof TEMPLATE_KINDS)[number];

/** Templates of each kind. The first one is the default. */
export const TEMPLATE_VARIANTS: { readonly [sort in TemplateKind]?: readonly string[] } = {
  provider: ["openai", "anthropic", "native"],
  middleware: ["guard", "cache", "route"],
};

/** Returns the kind by which a package of that template kind is named. */
export const pluginKindOf = (sort: TemplateKind): PluginKind | "protocol" =>
  sort === "row" ? "provider" : sort;

/** Returns the kinds of plugins in the package. */
export const pluginsOf = (sort: TemplateKind): readonly PluginKind[] => {
  const kind = pluginKindOf(sort);
  return kind === "protocol" ? ["provider", "frontend"] : [kind];
};

export const packageName = (sort: TemplateKind, name: string): string =>
  `tollgate-${pluginKindOf(sort)}-${name}`;

/** Returns the template's folder under `templates`. */
export const templateFolder = (sort: TemplateKind, like: string | undefined): string =>
  like === undefined ? sort : `${sort}-${like}`;

/** Words that YAML does not parse as text, so that `use:` cannot contain them. */
const YAML_WORDS = ["true", "false", "null"];
const MAX_NAME_LENGTH = 64;

/** Returns why a name is invalid, or undefined if it is valid. */
export function nameProblem(name: string): string | undefined {
  if (!NAME.test(name)) return "it must contain only lowercase letters, digits, and single dashes";
  if (name.length > MAX_NAME_LENGTH) return `it must have at most ${MAX_NAME_LENGTH} letters`;
  return YAML_WORDS.includes(name) ? "it is a reserved word of YAML" : undefined;
}

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** Quotes a name with a dash where code uses it as an object key. */
const quoteKeys = (code: string, name: string): string =>
  name.includes("-") ? code.replace(/(?<=[{,\s])acme(?=: )/g, '"acme"') : code;

/** Replaces the name of the template plugins, "Acme". */
export function renameInSource(file: string, source: string, name: string): string {
  const text = file.endsWith(".ts") ? quoteKeys(source, name) : source;
  const title = name
    .split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
  return text
    .replaceAll("ACME", name.toUpperCase().replaceAll("-", "_"))
    .replaceAll("Acme", title)
    .replaceAll("acme", name);
}
