import { editDistance } from "../lib/text.ts";

/** Maximum number of suggestions. */
const MAX_SUGGESTIONS = 3;
/**
 * Maximum length in characters of the names that are compared. Longer names are not typing errors.
 */
const MAX_LENGTH = 80;
/**
 * Maximum number of candidates whose edit distance is computed: those with the most similar start
 * and end.
 */
const MAX_COMPARED = 64;

/**
 * Returns the IDs that were probably meant, nearest first. An ID qualifies if it has the same name
 * at another provider, if at most one letter in three differs, or if one name contains the other.
 * Runs before each 404 response, so it filters by length first.
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

/** Scores equal names, and names of which one contains the other. Undefined: neither. */
function scoreSameName(name: string, other: string): number | undefined {
  if (other === name || other.endsWith(`/${name}`)) return 0;
  if (Math.min(name.length, other.length) < 4) return undefined;
  return other.includes(name) || name.includes(other)
    ? 1 + Math.abs(other.length - name.length) / 8
    : undefined;
}

/** Maximum edit distance: one letter in three. */
const maxTypos = (a: string, b: string): number => Math.floor(Math.max(a.length, b.length) / 3);
const isPlausible = (a: string, b: string): boolean =>
  Math.abs(a.length - b.length) <= maxTypos(a, b);

/** Returns the number of letters that two names share at their start and end. */
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
