// Text from outside, as it may stand in a line: nothing in it ends the line, steers a terminal or turns what is read around.

/** Nothing of it needs a second look. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** Of these none needs quotes in logfmt either. */
const BARE = /^[!#-<>-[\]-~]+$/;
/** What JSON lets stand and a reader may take for something else: controls, line ends of Unicode, marks that change its direction. */
const SLY = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** At most so many characters. */
export const cut = (text: string, most: number): string =>
  text.length > most ? text.slice(0, most) : text;

export const quoted = (text: string): string =>
  PLAIN.test(text) ? `"${text}"` : JSON.stringify(text).replace(SLY, escaped);

export const bare = (text: string): string => (BARE.test(text) ? text : quoted(text));

/** Every unit of it: what stands above the first plane is two. */
function escaped(character: string): string {
  let out = "";
  for (let i = 0; i < character.length; i++)
    out += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return out;
}

/** As a part of a logfmt key: two names never become one. */
export const named = (name: string): string =>
  /^[\w.-]+$/.test(name)
    ? name
    : Array.from(Buffer.from(name), (byte) =>
        /[\w.-]/.test(String.fromCharCode(byte))
          ? String.fromCharCode(byte)
          : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
      ).join("");
