// Text from outside, as it may stand in a line: nothing in it ends the line, steers a terminal or turns what is read around.

/** Nothing of it needs a second look. */
const NO_ESCAPES = /^[ !#-[\]-~]*$/;
/** Of these none needs quotes in logfmt either. */
const NO_QUOTES = /^[!#-<>-[\]-~]+$/;
/** What JSON lets stand and a reader may take for something else: controls, line ends of Unicode, marks that change its direction. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** At most so many characters. */
export const truncate = (text: string, most: number): string =>
  text.length > most ? text.slice(0, most) : text;

export const quote = (text: string): string =>
  NO_ESCAPES.test(text)
    ? `"${text}"`
    : JSON.stringify(text).replace(UNSAFE_CHARACTERS, escapeCharacter);

export const quoteIfNeeded = (text: string): string => (NO_QUOTES.test(text) ? text : quote(text));

/** Every unit of it: what stands above the first plane is two. */
function escapeCharacter(character: string): string {
  let out = "";
  for (let i = 0; i < character.length; i++)
    out += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return out;
}

/** As a part of a logfmt key: two names never become one. */
export const toLogfmtKey = (name: string): string =>
  /^[\w.-]+$/.test(name)
    ? name
    : Array.from(Buffer.from(name), (byte) =>
        /[\w.-]/.test(String.fromCharCode(byte))
          ? String.fromCharCode(byte)
          : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
      ).join("");
