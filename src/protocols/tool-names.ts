// Converts names and IDs that a protocol does not allow. Clients replay their history, so a name
// must be converted the same way in every later request. These functions therefore depend only on
// the name, never on a counter or a table.
import { createHash } from "node:crypto";

const ILLEGAL = /[^a-zA-Z0-9_-]/g;
const LEGAL = /^[a-zA-Z0-9_-]*$/;

const hash8 = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 8);

/**
 * Returns the name if the protocol allows it, else a legal name that ends in a hash of the
 * original, so that two names never collide.
 */
export function fitName(name: string, max: number): string {
  if (name !== "" && name.length <= max && LEGAL.test(name)) return name;
  return `${name.slice(0, max - 9).replace(ILLEGAL, "_")}_${hash8(name)}`;
}

/**
 * Maximum length of a name to convert. Longer than any name that a vendor documents. Replacing
 * letters in client text is slow, so longer names are returned unchanged.
 */
const MAX_NAME = 40;

/** Converts `googleSearch` to `google_search`. */
export const toSnakeCase = (name: string): string =>
  name.length > MAX_NAME ? name : name.replace(/[A-Z]/g, "_$&").toLowerCase();

/**
 * Returns a function that maps a name produced by `fitName`, for any length limit, back to the
 * declared name. Other names are returned unchanged. The declared names are read only once.
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

/** Returns tools by name. If two tools have the same name, the first is used. */
export function indexByName<T extends { readonly name: string }>(
  tools: readonly T[],
): Map<string, T> {
  const found = new Map<string, T>();
  for (const tool of tools) if (!found.has(tool.name)) found.set(tool.name, tool);
  return found;
}
