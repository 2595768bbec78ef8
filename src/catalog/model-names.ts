import { matchesGlob } from "../lib/glob.ts";
import { editDistance } from "../lib/text.ts";

/**
 * Whether a name matches a pattern. Each `*` matches any number of characters, including slashes.
 */
export const matchesPattern = matchesGlob;

/**
 * Returns the text that the single `*` matches, or "" for a pattern without `*`. Undefined if the
 * name does not match or the pattern has several `*`.
 */
export function wildcardText(pattern: string, name: string): string | undefined {
  if (!matchesGlob(pattern, name)) return undefined;
  const star = pattern.indexOf("*");
  if (star < 0) return "";
  if (pattern.includes("*", star + 1)) return undefined;
  return name.slice(star, name.length - (pattern.length - star - 1));
}

/** Returns patterns that match exactly the names that both patterns match. */
export function intersectPatterns(a: string, b: string): readonly string[] {
  if (!a.includes("*")) return matchesPattern(b, a) ? [a] : [];
  if (!b.includes("*")) return matchesPattern(a, b) ? [b] : [];
  // A pattern that matches the text of another pattern also matches every name that the other
  // pattern matches.
  if (matchesPattern(a, b)) return [b];
  if (matchesPattern(b, a)) return [a];
  // If two patterns overlap and one of them has several `*`, no list of patterns is their exact
  // intersection.
  if (hasSeveralWildcards(a) || hasSeveralWildcards(b)) return [];
  const [start, head] = byLength(a.slice(0, a.indexOf("*")), b.slice(0, b.indexOf("*")));
  const [end, tail] = byLength(a.slice(a.indexOf("*") + 1), b.slice(b.indexOf("*") + 1));
  if (!start.startsWith(head) || !end.endsWith(tail)) return [];
  const found = [`${start}*${end}`];
  // Short names, in which the required start and the required end overlap.
  for (let shared = 1; shared <= Math.min(start.length, end.length); shared++) {
    if (!start.endsWith(end.slice(0, shared))) continue;
    const name = start + end.slice(shared);
    if (matchesPattern(a, name) && matchesPattern(b, name)) found.push(name);
  }
  return found;
}

const hasSeveralWildcards = (pattern: string): boolean => pattern.split("*", 3).length > 2;

const byLength = (a: string, b: string): [longer: string, shorter: string] =>
  a.length > b.length ? [a, b] : [b, a];

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
 * Returns the IDs that were probably intended, nearest first. An ID qualifies if it has the same
 * name at another provider, if at most one in three letters differs, or if one name contains the
 * other. The function runs before each 404 response, so it filters by length first.
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

/**
 * Scores equal names, and pairs of names of which one contains the other. Undefined for all other
 * pairs.
 */
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

function scoreTypos(name: string, id: string): number | undefined {
  const d = editDistance(name, id);
  return d <= maxTypos(name, id) ? d / 2 : undefined;
}
