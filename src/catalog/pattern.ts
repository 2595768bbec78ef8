import { matchesGlob } from "../lib/glob.ts";

/** Whether a name matches a pattern. Each `*` matches any run of characters, including slashes. */
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
  // A pattern that matches another pattern's text also matches everything that the other one
  // matches.
  if (matchesPattern(a, b)) return [b];
  if (matchesPattern(b, a)) return [a];
  // Two overlapping patterns of which one has several `*`: no list of patterns is their exact
  // intersection.
  if (hasSeveralWildcards(a) || hasSeveralWildcards(b)) return [];
  const [start, head] = byLength(a.slice(0, a.indexOf("*")), b.slice(0, b.indexOf("*")));
  const [end, tail] = byLength(a.slice(a.indexOf("*") + 1), b.slice(b.indexOf("*") + 1));
  if (!start.startsWith(head) || !end.endsWith(tail)) return [];
  const found = [`${start}*${end}`];
  // Short names in which the required start and the required end overlap.
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
