import { matchesGlob } from "../lib/glob.ts";

/** Whether a name matches a pattern. Every `*` in it stands for any run of characters, slashes included. */
export const matchesPattern = matchesGlob;

/** The text that the only star stands for, "" without a star; undefined if the name does not match, or if there are more stars. */
export function wildcardText(pattern: string, name: string): string | undefined {
  if (!matchesGlob(pattern, name)) return undefined;
  const star = pattern.indexOf("*");
  if (star < 0) return "";
  if (pattern.includes("*", star + 1)) return undefined;
  return name.slice(star, name.length - (pattern.length - star - 1));
}

/** Patterns that match what both match, and nothing else. */
export function intersectPatterns(a: string, b: string): readonly string[] {
  if (!a.includes("*")) return matchesPattern(b, a) ? [a] : [];
  if (!b.includes("*")) return matchesPattern(a, b) ? [b] : [];
  // A pattern that fits another one's text fits all that the other one fits.
  if (matchesPattern(a, b)) return [b];
  if (matchesPattern(b, a)) return [a];
  // Of two that overlap, one with several stars: no list of patterns is exactly that.
  if (hasSeveralWildcards(a) || hasSeveralWildcards(b)) return [];
  const [start, head] = byLength(a.slice(0, a.indexOf("*")), b.slice(0, b.indexOf("*")));
  const [end, tail] = byLength(a.slice(a.indexOf("*") + 1), b.slice(b.indexOf("*") + 1));
  if (!start.startsWith(head) || !end.endsWith(tail)) return [];
  const found = [`${start}*${end}`];
  // Names so short that the beginning of the one is the end of the other.
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
