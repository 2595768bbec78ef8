// Calculates each candidate's share of a name's calls. A candidate's weight is relative to the
// others, and its credentials divide its share by their weights. Without a weight, a candidate has
// the sum of its credentials' weights, and a name has the sum of its candidates' weights.

/** A part of a name: a candidate, or everything that another name resolves to. */
export type NamePart = { readonly weight: number | undefined } & (
  | { readonly id: string; readonly parts?: never }
  | { readonly parts: readonly NamePart[]; readonly id?: never }
);

/**
 * Returns the share of each candidate. `credentialWeight`: returns the sum of the weights of a
 * candidate's credentials, or undefined if the candidate is not mounted. The shares add up to 1, or
 * to 0 if there are none.
 */
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
  // If all weights are zero, they are ignored.
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

/** Returns the ID of every candidate once, in the order of the config. */
export const candidateIdsIn = (parts: readonly NamePart[]): readonly string[] => [
  ...new Set(
    parts.flatMap((part) => (part.id === undefined ? candidateIdsIn(part.parts) : [part.id])),
  ),
];
