// What a new plugin is called: in code and in files by its name, on pages as people write it, in variables in capitals.
import type { PluginKind } from "../../plugin/define.ts";

/** What can be begun. A row is a provider that is data; a protocol comes with a frontend and a provider that speak it. */
export const SORTS = [
  "provider",
  "row",
  "protocol",
  "frontend",
  "middleware",
  "observer",
  "store",
] as const;
export type Sort = (typeof SORTS)[number];

/** Which template each is begun from; the first one where none is named. */
export const LIKES: { readonly [sort in Sort]?: readonly string[] } = {
  provider: ["openai", "anthropic", "native"],
  middleware: ["guard", "cache", "route"],
};

/** What a package of that sort brings, by the word of its name. */
export const kindOf = (sort: Sort): PluginKind | "protocol" => (sort === "row" ? "provider" : sort);

export const packageOf = (sort: Sort, name: string): string => `tollgate-${kindOf(sort)}-${name}`;

/** The folder under `templates`. */
export const templateOf = (sort: Sort, like: string | undefined): string =>
  like === undefined ? sort : `${sort}-${like}`;

/** Templates are plugins called Acme. */
export function renamed(text: string, name: string): string {
  const title = name
    .split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
  return text
    .replaceAll("ACME", name.toUpperCase().replaceAll("-", "_"))
    .replaceAll("Acme", title)
    .replaceAll("acme", name);
}
