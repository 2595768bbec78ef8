// Formats text for display: plurals, the nearest word, and source excerpts with a caret. This file
// does not depend on the meaning of the words.

export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${n} ${n === 1 ? one : many}`;

/** Joins words: "a", "a or b", "a, b or c". */
export const joinWords = (words: readonly string[], last = "or"): string =>
  words.length < 2
    ? (words[0] ?? "")
    : `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]!}`;

const escaped = (c: string): string => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Escapes control characters and bidirectional marks, so that text from outside cannot control the
 * terminal or reverse the writing direction.
 */
export const escapeControls = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, escaped);

/** Escapes like `escapeControls`, but keeps line ends and tabs. */
export const escapeControlsInLines = (text: string): string =>
  text.replace(/(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, escaped);

/** Removes differences that come from typing or another product's spelling. */
const normalizeWord = (word: string) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

/**
 * Longest word, in characters, that is compared. Longer words are not typing errors, and the
 * distance takes quadratic time.
 */
const MAX_WORD = 80;

/**
 * Returns the word that was probably intended, or undefined. One in three letters may be wrong,
 * spelling (`apiKey`, `api_key`) is ignored, and the beginning or end of a longer word matches. If
 * several words are equally near, the first word is returned.
 */
export function nearest(word: string, words: Iterable<string>): string | undefined {
  const wanted = normalizeWord(word);
  if (wanted === "" || wanted.length > MAX_WORD) return undefined;
  let best: string | undefined;
  let least = Infinity;
  for (const candidate of words) {
    const other = normalizeWord(candidate);
    if (other === "" || other.length > MAX_WORD) continue;
    const allowed = Math.max(1, Math.floor(Math.max(wanted.length, other.length) / 3));
    let d = editDistance(wanted, other);
    if (d > allowed && wanted.length >= 4 && (other.startsWith(wanted) || other.endsWith(wanted)))
      d = allowed + 1;
    else if (d > allowed || (d === wanted.length && d === other.length)) continue;
    if (d < least) [best, least] = [candidate, d];
  }
  return best;
}

/**
 * Returns ` Did you mean "x"?` for a word that is similar to a known one, and an empty string
 * otherwise.
 */
export function didYouMean(word: string, known: Iterable<string>): string {
  const near = nearest(word, known);
  return near === undefined ? "" : ` Did you mean "${near}"?`;
}

/**
 * Returns the number of letters inserted, deleted, replaced, or swapped with a neighbor (optimal
 * string alignment).
 */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let d = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        d = Math.min(d, before[j - 2]! + 1);
      next.push(d);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}

/**
 * Returns up to two preceding lines, the line itself, and carets under the marked text. Lines and
 * columns count from 1.
 */
export function codeFrame(
  lines: readonly string[],
  at: { readonly line: number; readonly column: number; readonly length: number },
): string {
  // Tabs are shown one character wide, so that the caret is at the right column.
  const shown = (n: number) => (lines[n - 1] ?? "").replaceAll("\t", " ");
  const first = Math.max(1, at.line - 2);
  const width = String(at.line).length;
  const rows: string[] = [];
  for (let n = first; n <= at.line; n++)
    rows.push(`${n === at.line ? ">" : " "} ${String(n).padStart(width)} | ${shown(n)}`.trimEnd());
  const room = shown(at.line).length - at.column + 1;
  const carets = "^".repeat(Math.max(1, Math.min(at.length, room)));
  rows.push(`  ${" ".repeat(width)} | ${" ".repeat(at.column - 1)}${carets}`);
  return rows.join("\n");
}
