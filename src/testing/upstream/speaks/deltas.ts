/** A text in the helpings models give: word by word, each with the space before it. */
export const splitWords = (text: string): string[] =>
  text === "" ? [] : (text.match(/\s*\S+(?:\s+$)?|\s+/g) ?? [text]);

/** A tool's arguments: a few characters at a time, wherever that falls, but never inside one. */
export function splitArguments(text: string, length = 7): string[] {
  const letters = [...text];
  const pieces: string[] = [];
  for (let i = 0; i < letters.length; i += length)
    pieces.push(letters.slice(i, i + length).join(""));
  return pieces;
}

/** Unix seconds: one moment for every answer, so that answers can be compared. */
export const CREATED = 1795000000;
