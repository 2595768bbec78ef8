// Whose share of a name's calls is how large, where the first one is drawn. A candidate's weight is its share beside the others', and its
// credentials divide it by theirs. Without a weight it has those of its credentials together, and a name what its candidates have.

/** What a name leads to: a candidate, or all that another name leads to. */
export type NamePart = { readonly weight: number | undefined } & (
  | { readonly id: string; readonly parts?: never }
  | { readonly parts: readonly NamePart[]; readonly id?: never }
);

/** `own`: the weights of a candidate's credentials together; undefined: it is not there. All shares together are 1, or 0. */
export function sharesOf(
  parts: readonly NamePart[],
  own: (id: string) => number | undefined,
): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  divide(parts, 1, own, shares);
  return shares;
}

function divide(
  parts: readonly NamePart[],
  share: number,
  own: (id: string) => number | undefined,
  into: Map<string, number>,
): void {
  const said = parts.map((part) => sizeOf(part, own));
  // Where all of them are zero, none says anything.
  const zero = said.every((size) => size === undefined || size === 0);
  const sizes = said.map((size) => (size === undefined ? 0 : zero ? 1 : size));
  const all = sum(sizes);
  parts.forEach((part, i) => {
    const its = all > 0 ? (share * sizes[i]!) / all : 0;
    if (part.id === undefined) divide(part.parts, its, own, into);
    else into.set(part.id, (into.get(part.id) ?? 0) + its);
  });
}

function sizeOf(part: NamePart, own: (id: string) => number | undefined): number | undefined {
  if (part.id !== undefined) {
    const its = own(part.id);
    return its === undefined ? undefined : (part.weight ?? its);
  }
  const sizes = part.parts.map((each) => sizeOf(each, own)).filter((size) => size !== undefined);
  return sizes.length === 0 ? undefined : (part.weight ?? sum(sizes));
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

/** Every candidate once, in the order in which they are written. */
export const idsIn = (parts: readonly NamePart[]): readonly string[] => [
  ...new Set(parts.flatMap((part) => (part.id === undefined ? idsIn(part.parts) : [part.id]))),
];
