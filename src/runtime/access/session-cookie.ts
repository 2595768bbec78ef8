// Reads and writes the session cookie, and distinguishes the console's own pages from other sites.
// The browser reports the origin of a request, and only the console's pages can add the gateway's
// own header.
import type { IncomingMessage } from "node:http";
import { fail } from "../../model/error.ts";

/** Header that the console's pages add to each request with a session. */
export const PAGE_HEADER = "x-tollgate-console";

const cookieNameOf = (secure: boolean): string => (secure ? "__Host-tollgate" : "tollgate");
const TOKEN_PATTERN = /^[\w-]{43}$/;

export const readSessionToken = (req: IncomingMessage, secure: boolean): string | undefined =>
  readTokenCookie(req, cookieNameOf(secure));

/** Returns the token in a cookie of this name. */
export function readTokenCookie(req: IncomingMessage, cookieName: string): string | undefined {
  const name = `${cookieName}=`;
  const found = (req.headers.cookie ?? "")
    .split(";", 50)
    .map((each) => each.trim())
    .filter((each) => each.startsWith(name));
  // If there are two cookies, another site may have set one of them.
  const token = found.length === 1 ? found[0]!.slice(name.length) : "";
  return TOKEN_PATTERN.test(token) ? token : undefined;
}

/** Returns the `Set-Cookie` value for a session. Without a token, it deletes the cookie. */
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

/**
 * Throws if a request does not come from the gateway's own pages. Requests that change something,
 * and logins and logouts, must also carry the origin and the header.
 */
export function assertSameOrigin(req: IncomingMessage, secure: boolean): void {
  const site = req.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") rejectCrossOrigin();
  if (req.method === "GET" || req.method === "HEAD") return;
  const { origin, host } = req.headers;
  const own = `${secure ? "https" : "http"}://${host}`;
  if (origin === undefined || origin.toLowerCase() !== own.toLowerCase()) rejectCrossOrigin();
  if (req.headers[PAGE_HEADER] !== "1")
    fail(
      "forbidden",
      `Missing header ${PAGE_HEADER}: 1, which requests with a session cookie require.`,
      { code: "page_header" },
    );
}

const rejectCrossOrigin = (): never =>
  fail("forbidden", "Requests from other web pages are not allowed.", {
    code: "origin_not_allowed",
  });
