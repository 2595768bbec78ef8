// How the demo counts: a token is up to four letters or digits in a row, or any other single visible character. Simple
// enough to check by hand, and close to what real models count for English.

const TOKEN = /[\p{L}\p{N}]{1,4}|[^\s\p{L}\p{N}]/gu;

export const countTokens = (text: string): number => text.match(TOKEN)?.length ?? 0;

/** Words with the space before them, so that they join to the text again; counting them is counting the text. */
export const splitWords = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? [];

/** The longest beginning of at most so many tokens. */
export function truncateToTokens(text: string, most: number): string {
  if (most <= 0) return "";
  let n = 0;
  for (const match of text.matchAll(TOKEN))
    if (++n === most) return text.slice(0, match.index + match[0].length);
  return text;
}
