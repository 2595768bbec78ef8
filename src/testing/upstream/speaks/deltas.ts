/** Splits a text as models stream it: word by word, each with the space before it. */
export const splitWords = (text: string): string[] =>
  text === "" ? [] : (text.match(/\s*\S+(?:\s+$)?|\s+/g) ?? [text]);

/**
 * Splits the arguments of a tool call into pieces of a few characters, at any position but never
 * inside of a character.
 */
export function splitArguments(text: string, length = 7): string[] {
  const letters = [...text];
  const pieces: string[] = [];
  for (let i = 0; i < letters.length; i += length)
    pieces.push(letters.slice(i, i + length).join(""));
  return pieces;
}

/**
 * Creation time in Unix seconds, the same for every response, so that responses can be compared.
 */
export const CREATED = 1795000000;
