import { editDistance } from "../lib/text.ts";

/** How many names a person wants to read. */
const MAX_SUGGESTIONS = 3;
/** Beyond this, two names are not a slip of the finger apart; and what is longer is not compared. */
const MAX_LENGTH = 80;
/** Letters are compared one by one with this many: those that begin and end most like what is wanted. */
const MAX_COMPARED = 64;

/**
 * The ids that were probably meant, nearest first: the same name with another provider, then a letter or two of
 * difference (at most one in three), or a name inside one that is a little longer. Runs on the way to a 404, so it looks
 * at lengths first.
 */
export function suggestNames(wanted: string, ids: Iterable<string>): readonly string[] {
  if (wanted === "" || wanted.length > MAX_LENGTH) return [];
  const lowered = wanted.toLowerCase();
  const name = withoutProvider(lowered);
  const likely: { id: string; score: number | undefined; alike: number }[] = [];
  for (const id of ids) {
    if (id.length > MAX_LENGTH) continue;
    const other = id.toLowerCase();
    const score = scoreSameName(name, withoutProvider(other));
    const alike = score === undefined ? commonEndsLength(lowered, other) : Infinity;
    if (score !== undefined || isPlausible(lowered, other)) likely.push({ id, score, alike });
  }
  return likely
    .toSorted((a, b) => b.alike - a.alike)
    .slice(0, MAX_COMPARED)
    .flatMap(({ id, score = scoreTypos(lowered, id.toLowerCase()) }) =>
      score === undefined ? [] : [{ id, score }],
    )
    .toSorted((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
    .slice(0, MAX_SUGGESTIONS)
    .map(({ id }) => id);
}

const withoutProvider = (id: string): string => id.slice(id.indexOf("/") + 1);

/** The same name, or one inside the other. */
function scoreSameName(name: string, other: string): number | undefined {
  if (other === name || other.endsWith(`/${name}`)) return 0;
  if (Math.min(name.length, other.length) < 4) return undefined;
  return other.includes(name) || name.includes(other)
    ? 1 + Math.abs(other.length - name.length) / 8
    : undefined;
}

/** One letter in three may be wrong. */
const maxTypos = (a: string, b: string): number => Math.floor(Math.max(a.length, b.length) / 3);
const isPlausible = (a: string, b: string): boolean =>
  Math.abs(a.length - b.length) <= maxTypos(a, b);

/** How many letters two names share at their beginning and end. */
function commonEndsLength(a: string, b: string): number {
  const maxLength = Math.min(a.length, b.length);
  let first = 0;
  while (first < maxLength && a[first] === b[first]) first++;
  let last = 0;
  while (last < maxLength - first && a[a.length - 1 - last] === b[b.length - 1 - last]) last++;
  return first + last;
}

function scoreTypos(asked: string, id: string): number | undefined {
  const d = editDistance(asked, id);
  return d <= maxTypos(asked, id) ? d / 2 : undefined;
}
