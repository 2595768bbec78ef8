/**
 * Whether a text matches a pattern. Each `*` matches any number of characters, including slashes.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const first = pattern.indexOf("*");
  if (first < 0) return pattern === text;
  const last = pattern.lastIndexOf("*");
  const end = text.length - (pattern.length - last - 1);
  if (end < first) return false;
  if (!text.startsWith(pattern.slice(0, first)) || !text.endsWith(pattern.slice(last + 1)))
    return false;
  let at = first;
  for (const piece of pattern.slice(first + 1, last).split("*")) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
