// Detects URLs of files that belong to a provider account. Google serves uploaded files only to the
// account that uploaded them.

/** Host under which Google serves uploaded files. */
const GOOGLE_STORAGE_HOST = /(?:^|\.)googleapis\.com\.*$/i;

/** Schemes that do not depend on an account: web URLs and data URLs. */
const PUBLIC_SCHEMES: ReadonlySet<string> = new Set(["https:", "http:", "data:"]);

/**
 * A URL without escapes, user names, or unusual characters before its path. Almost all URLs match
 * and need no parser.
 */
const PLAIN_URL = /^https?:\/\/([a-z\d.-]{1,253})(?::\d{1,5})?(?:[/?#]|$)/i;

/**
 * Maximum number of characters that are parsed, because parsing is slow. Signed URLs have about
 * half as many.
 */
const MAX_PARSED = 2_048;

/**
 * The `files` path segment of uploads, with any letter percent-encoded, or an encoded percent sign.
 */
const UPLOAD_PATH =
  /(?:^|\/|%2f)(?:f|%[46]6)(?:i|%[46]9)(?:l|%[46]c)(?:e|%[46]5)(?:s|%[57]3)(?:\/|%2f|$)|%25/i;

/**
 * Returns whether a URL refers to a file in a provider account. The check uses the parsed URL, so
 * letter case, escapes, a dot after the host, and a user name before the host make no difference.
 *
 * Text that is not a URL can be a bare file name, so it counts as stored. So does every scheme that
 * is not fetched from the open web. A Google URL counts as stored if its path has double escapes or
 * if the URL is longer than the parsed part.
 */
export function isStoredFile(url: string): boolean {
  const host = PLAIN_URL.exec(url)?.[1];
  if (host !== undefined && !GOOGLE_STORAGE_HOST.test(host)) return false;
  const isCut = url.length > MAX_PARSED;
  const at = URL.parse(isCut ? url.slice(0, MAX_PARSED) : url);
  if (!at || !PUBLIC_SCHEMES.has(at.protocol)) return true;
  if (at.protocol === "data:") return false;
  // If the URL was cut inside the host, the rest of the host is unknown.
  if (!GOOGLE_STORAGE_HOST.test(at.hostname)) return isCut && at.pathname.length < 2;
  return isCut || UPLOAD_PATH.test(at.pathname);
}
