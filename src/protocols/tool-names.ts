// Names and ids that one wire allows and another refuses. Clients replay their history, so a name must be changed the
// same way in every later request: these are pure functions of the name, never of a counter or a table.
import { createHash } from "node:crypto";

const ILLEGAL = /[^a-zA-Z0-9_-]/g;
const LEGAL = /^[a-zA-Z0-9_-]*$/;

const hash8 = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 8);

/** The name itself where the wire allows it; else a legal one that ends in a hash of it, so that two never meet. */
export function fitName(name: string, max: number): string {
  if (name !== "" && name.length <= max && LEGAL.test(name)) return name;
  return `${name.slice(0, max - 9).replace(ILLEGAL, "_")}_${hash8(name)}`;
}

/** Longer than any name that a vendor documents. Replacing letters in a client's text is slow, so a longer one stays as it is. */
const MAX_NAME = 40;

/** `googleSearch` → `google_search`. */
export const toSnakeCase = (name: string): string =>
  name.length > MAX_NAME ? name : name.replace(/[A-Z]/g, "_$&").toLowerCase();

/**
 * The declared name that `fitName` would have turned into this one, whatever the limit was; else the name as it is. What was
 * declared is looked through once, however many names are asked for.
 */
export function createNameRestorer(declared: () => Iterable<string>): (fitted: string) => string {
  let all: Set<string> | undefined;
  let byHash: Map<string, string> | undefined;
  return (fitted) => {
    const hash = /_([0-9a-f]{8})$/.exec(fitted)?.[1];
    if (hash === undefined) return fitted;
    all ??= new Set(declared());
    if (all.has(fitted)) return fitted;
    byHash ??= new Map(Array.from(all, (name) => [hash8(name), name]));
    return byHash.get(hash) ?? fitted;
  };
}

/** Tools by their names; of two with one name the first. */
export function indexByName<T extends { readonly name: string }>(
  tools: readonly T[],
): Map<string, T> {
  const found = new Map<string, T>();
  for (const tool of tools) if (!found.has(tool.name)) found.set(tool.name, tool);
  return found;
}
