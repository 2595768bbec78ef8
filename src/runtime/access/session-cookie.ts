// The cookie of a session, and how a page of ours is told from another site's: the browser says where a request comes from, and only
// a page of ours can add a header of ours.
import type { IncomingMessage } from "node:http";
import { fail } from "../../model/error.ts";

/** What a page of the console adds to whatever it asks for with a session. */
export const PAGE_HEADER = "x-tollgate-console";

const cookieNameOf = (secure: boolean): string => (secure ? "__Host-tollgate" : "tollgate");
const TOKEN_PATTERN = /^[\w-]{43}$/;

export function readSessionToken(req: IncomingMessage, secure: boolean): string | undefined {
  const name = `${cookieNameOf(secure)}=`;
  const found = (req.headers.cookie ?? "")
    .split(";", 50)
    .map((each) => each.trim())
    .filter((each) => each.startsWith(name));
  // Of two, one may be another site's.
  const token = found.length === 1 ? found[0]!.slice(name.length) : "";
  return TOKEN_PATTERN.test(token) ? token : undefined;
}

/** Without a word it ends the one that is there. */
export function formatSessionCookie(word: string | undefined, secure: boolean, ms: number): string {
  const parts = [
    `${cookieNameOf(secure)}=${word ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${word === undefined ? 0 : Math.ceil(ms / 1_000)}`,
  ];
  return [...parts, ...(secure ? ["Secure"] : [])].join("; ");
}

/** What changes something, and signs in or out, has to come from a page of ours. */
export function assertSameOrigin(req: IncomingMessage, secure: boolean): void {
  const site = req.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") rejectCrossOrigin();
  if (req.method === "GET" || req.method === "HEAD") return;
  const { origin, host } = req.headers;
  const own = `${secure ? "https" : "http"}://${host}`;
  if (origin === undefined || origin.toLowerCase() !== own.toLowerCase()) rejectCrossOrigin();
  if (req.headers[PAGE_HEADER] !== "1")
    fail("forbidden", `With a session, send ${PAGE_HEADER}: 1 too.`, { code: "page_header" });
}

const rejectCrossOrigin = (): never =>
  fail("forbidden", "Calls from other web pages are refused.", { code: "origin_not_allowed" });
