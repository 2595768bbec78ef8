// Which addresses are an account's own: what Google keeps of an upload is reached with the account's key.

/** Where Google keeps what is uploaded. */
const GOOGLE_STORAGE_HOST = /(?:^|\.)googleapis\.com\.*$/i;

/** What is no account's: an address on the open web, and what stands in the address itself. */
const PUBLIC_SCHEMES: ReadonlySet<string> = new Set(["https:", "http:", "data:"]);

/** An address without escapes, user names or odd signs before its path. Almost all are such, and need no parser. */
const PLAIN_URL = /^https?:\/\/([a-z\d.-]{1,253})(?::\d{1,5})?(?:[/?#]|$)/i;

/** Parsing is slower than reading: only so many characters of an address are parsed. A signed one has half as many. */
const MAX_PARSED = 2_048;

/** The folder of uploads, with any of its letters escaped. */
const UPLOAD_PATH =
  /(?:^|\/|%2f)(?:f|%[46]6)(?:i|%[46]9)(?:l|%[46]c)(?:e|%[46]5)(?:s|%[57]3)(?:\/|%2f|$)|%25/i;

/**
 * Judged by what it parses to: in any letter case, with any escapes, with a dot behind its host or a name before it. What is
 * no address at all may be the bare name of a file; anything that is not fetched from the open web is the account's. So is an
 * address at Google that has escaped escapes, or is longer than what is parsed.
 */
export function isStoredFile(url: string): boolean {
  const host = PLAIN_URL.exec(url)?.[1];
  if (host !== undefined && !GOOGLE_STORAGE_HOST.test(host)) return false;
  const isCut = url.length > MAX_PARSED;
  const at = URL.parse(isCut ? url.slice(0, MAX_PARSED) : url);
  if (!at || !PUBLIC_SCHEMES.has(at.protocol)) return true;
  if (at.protocol === "data:") return false;
  // The host may go on where it was cut.
  if (!GOOGLE_STORAGE_HOST.test(at.hostname)) return isCut && at.pathname.length < 2;
  return isCut || UPLOAD_PATH.test(at.pathname);
}
