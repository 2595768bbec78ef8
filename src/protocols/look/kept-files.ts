// Which addresses are an account's own: what Google keeps of an upload is reached with the account's key.

/** Where Google keeps what is uploaded. */
const KEEPERS = /(?:^|\.)googleapis\.com$/;

/** What is no account's: an address on the open web, and what stands in the address itself. */
const FETCHED: ReadonlySet<string> = new Set(["https:", "http:", "data:"]);

/**
 * Judged by what it parses to: in any letter case, with any escapes, with a dot behind its host or a name before it. What is
 * no address at all may be the bare name of a file; anything that is not fetched from the open web is the account's.
 */
export function isKeptFile(url: string): boolean {
  const at = URL.parse(url);
  if (!at) return true;
  if (!FETCHED.has(at.protocol)) return true;
  return KEEPERS.test(at.hostname.replace(/\.+$/, "")) && /(?:^|\/)files(?:\/|$)/i.test(plain(at));
}

/** With what its escapes stand for, however often they were escaped. */
function plain({ pathname }: URL): string {
  let path = pathname;
  for (let i = 0; i < 3 && path.includes("%"); i++)
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return path;
}
