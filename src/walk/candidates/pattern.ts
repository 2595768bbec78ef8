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
