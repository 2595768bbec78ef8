// Escapes untrusted text for a log line. Escaped text cannot end the line, control a terminal, or
// reverse the reading direction of neighboring text.

/** Matches text that needs no escaping. */
const NO_ESCAPES = /^[ !#-[\]-~]*$/;
/** Matches text that needs no quotes in logfmt either. */
const NO_QUOTES = /^[!#-<>-[\]-~]+$/;
/**
 * Characters that JSON allows unescaped but that a reader may misinterpret: controls, Unicode line
 * ends, and marks that change the text direction.
 */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Shortens text to a maximum number of characters. */
export const truncate = (text: string, most: number): string =>
  text.length > most ? text.slice(0, most) : text;

export const quote = (text: string): string =>
  NO_ESCAPES.test(text)
    ? `"${text}"`
    : JSON.stringify(text).replace(UNSAFE_CHARACTERS, escapeCharacter);

export const quoteIfNeeded = (text: string): string => (NO_QUOTES.test(text) ? text : quote(text));

/** Escapes each UTF-16 code unit. A character beyond the first Unicode plane has two of them. */
function escapeCharacter(character: string): string {
  let out = "";
  for (let i = 0; i < character.length; i++)
    out += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return out;
}

/** Escapes a part of a logfmt key. Different names always give different keys. */
export const toLogfmtKey = (name: string): string =>
  /^[\w.-]+$/.test(name)
    ? name
    : Array.from(Buffer.from(name), (byte) =>
        /[\w.-]/.test(String.fromCharCode(byte))
          ? String.fromCharCode(byte)
          : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
      ).join("");
