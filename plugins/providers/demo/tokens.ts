// Token counting of the demo: a token is up to four consecutive letters or digits, or any other
// single visible character. This is easy to check by hand and close to real models' counts for
// English.

const TOKEN = /[\p{L}\p{N}]{1,4}|[^\s\p{L}\p{N}]/gu;

export const countTokens = (text: string): number => text.match(TOKEN)?.length ?? 0;

/**
 * Splits text into words with their leading whitespace. Joined they give the text again, and their
 * counts add up to the text's count.
 */
export const splitWords = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? [];

/** Returns the longest prefix with at most `most` tokens. */
export function truncateToTokens(text: string, most: number): string {
  if (most <= 0) return "";
  let n = 0;
  for (const match of text.matchAll(TOKEN))
    if (++n === most) return text.slice(0, match.index + match[0].length);
  return text;
}
