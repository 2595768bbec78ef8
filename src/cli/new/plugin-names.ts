// What a new plugin is called: in code and in files by its name, on pages as people write it, in variables in capitals.
import type { PluginKind } from "../../plugin/define.ts";

/** What can be begun. A row is a provider that is data; a protocol comes with a frontend and a provider that speak it. */
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

/** Which template each is begun from; the first one where none is named. */
export const TEMPLATE_VARIANTS: { readonly [sort in TemplateKind]?: readonly string[] } = {
  provider: ["openai", "anthropic", "native"],
  middleware: ["guard", "cache", "route"],
};

/** What a package of that sort brings, by the word of its name. */
export const pluginKindOf = (sort: TemplateKind): PluginKind | "protocol" =>
  sort === "row" ? "provider" : sort;

/** The plugins in it. */
export const pluginsOf = (sort: TemplateKind): readonly PluginKind[] => {
  const kind = pluginKindOf(sort);
  return kind === "protocol" ? ["provider", "frontend"] : [kind];
};

export const packageName = (sort: TemplateKind, name: string): string =>
  `tollgate-${pluginKindOf(sort)}-${name}`;

/** The folder under `templates`. */
export const templateFolder = (sort: TemplateKind, like: string | undefined): string =>
  like === undefined ? sort : `${sort}-${like}`;

/** What YAML takes for something else than text, so that `use:` could not say it. */
const YAML_WORDS = ["true", "false", "null"];
const MAX_NAME_LENGTH = 64;

/** Why a plugin cannot be called that; `undefined`: it can. */
export function nameProblem(name: string): string | undefined {
  if (!NAME.test(name)) return "lower-case letters, digits and single dashes";
  if (name.length > MAX_NAME_LENGTH) return `at most ${MAX_NAME_LENGTH} letters`;
  return YAML_WORDS.includes(name) ? "that is a word of YAML, which means no name" : undefined;
}

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** A name that stands alone as a key: in code one with a dash wants quotes. */
const quoteKeys = (code: string, name: string): string =>
  name.includes("-") ? code.replace(/(?<=[{,\s])acme(?=: )/g, '"acme"') : code;

/** Templates are plugins called Acme. */
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
