/** Patterns have one star, which stands for any run of characters, slashes included. */
export function matches(pattern: string, name: string): boolean {
  return carried(pattern, name) !== undefined;
}

/** What the star stood for, "" without a star, or nothing when the name does not match. */
export function carried(pattern: string, name: string): string | undefined {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === name ? "" : undefined;
  const tail = pattern.length - star - 1;
  if (
    name.length < star + tail ||
    !name.startsWith(pattern.slice(0, star)) ||
    !name.endsWith(pattern.slice(star + 1))
  )
    return undefined;
  return name.slice(star, name.length - tail);
}

/** Patterns that match exactly what both match. */
export function common(a: string, b: string): readonly string[] {
  if (!a.includes("*")) return matches(b, a) ? [a] : [];
  if (!b.includes("*")) return matches(a, b) ? [b] : [];
  const [start, head] = byLength(a.slice(0, a.indexOf("*")), b.slice(0, b.indexOf("*")));
  const [end, tail] = byLength(a.slice(a.indexOf("*") + 1), b.slice(b.indexOf("*") + 1));
  if (!start.startsWith(head) || !end.endsWith(tail)) return [];
  const found = [`${start}*${end}`];
  // Names so short that the beginning of the one is the end of the other.
  for (let shared = 1; shared <= Math.min(start.length, end.length); shared++) {
    if (!start.endsWith(end.slice(0, shared))) continue;
    const name = start + end.slice(shared);
    if (matches(a, name) && matches(b, name)) found.push(name);
  }
  return found;
}

const byLength = (a: string, b: string): [longer: string, shorter: string] =>
  a.length > b.length ? [a, b] : [b, a];
