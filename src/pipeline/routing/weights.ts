// Whose share of a name's calls is how large, where the first one is drawn. A candidate's weight is its share beside the others', and its
// credentials divide it by theirs. Without a weight it has those of its credentials together, and a name what its candidates have.

/** What a name leads to: a candidate, or all that another name leads to. */
export type NamePart = { readonly weight: number | undefined } & (
  | { readonly id: string; readonly parts?: never }
  | { readonly parts: readonly NamePart[]; readonly id?: never }
);

/** `own`: the weights of a candidate's credentials together; undefined: it is not there. All shares together are 1, or 0. */
export function computeShares(
  parts: readonly NamePart[],
  credentialWeight: (id: string) => number | undefined,
): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  divideShare(parts, 1, credentialWeight, shares);
  return shares;
}

function divideShare(
  parts: readonly NamePart[],
  share: number,
  credentialWeight: (id: string) => number | undefined,
  into: Map<string, number>,
): void {
  const weights = parts.map((part) => weightOfPart(part, credentialWeight));
  // Where all of them are zero, none says anything.
  const areAllZero = weights.every((size) => size === undefined || size === 0);
  const sizes = weights.map((size) => (size === undefined ? 0 : areAllZero ? 1 : size));
  const all = sum(sizes);
  parts.forEach((part, i) => {
    const its = all > 0 ? (share * sizes[i]!) / all : 0;
    if (part.id === undefined) divideShare(part.parts, its, credentialWeight, into);
    else into.set(part.id, (into.get(part.id) ?? 0) + its);
  });
}

function weightOfPart(
  part: NamePart,
  credentialWeight: (id: string) => number | undefined,
): number | undefined {
  if (part.id !== undefined) {
    const its = credentialWeight(part.id);
    return its === undefined ? undefined : (part.weight ?? its);
  }
  const sizes = part.parts
    .map((each) => weightOfPart(each, credentialWeight))
    .filter((size) => size !== undefined);
  return sizes.length === 0 ? undefined : (part.weight ?? sum(sizes));
}

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

/** Every candidate once, in the order in which they are written. */
export const candidateIdsIn = (parts: readonly NamePart[]): readonly string[] => [
  ...new Set(
    parts.flatMap((part) => (part.id === undefined ? candidateIdsIn(part.parts) : [part.id])),
  ),
];
