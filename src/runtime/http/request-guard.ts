// Checks a request by its head alone, before any byte of its body is read. Pure functions. Request
// smuggling is possible when two parsers read one request differently, so every ambiguous request
// is rejected.
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { BOUNDS, boundMessage } from "../../lib/bounds.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";

export interface Rejection {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /**
   * Time after which the same request may succeed. If unset, the request would be rejected again.
   */
  readonly retryAfterMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RequestGuard {
  /**
   * Returns the rejection, or undefined if the request is accepted. If the target contains the
   * host, it is rewritten to a plain path.
   */
  check(req: IncomingMessage): Rejection | undefined;
}

export interface RequestGuardOptions {
  /** Address that the listener is bound to. */
  readonly host: string;
  /** Additional accepted `Host` names. */
  readonly hosts?: readonly string[];
  /** Origins from which browsers may send requests. */
  readonly origins?: readonly string[];
  /**
   * Whether the stricter admin rules apply. On any address, only listed names and numeric addresses
   * are accepted as `Host`, because no web page can redirect these. Only pages that the listener
   * itself serves may send requests.
   */
  readonly isAdmin?: boolean;
  /** Maximum number of header lines. */
  readonly maxHeaders: number;
}

/**
 * Headers that may appear only once. If a header is repeated, a proxy in front may use the other
 * value.
 */
const SINGLE_HEADERS: ReadonlyMap<string, number> = new Map(
  [
    "host",
    "origin",
    "expect",
    "content-type",
    "content-length",
    "authorization",
    "transfer-encoding",
  ].map((name, i) => [name, 1 << i]),
);

const AUTHORITY = /^(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+?)\.?(?::\d{1,5})?$/;

export function createRequestGuard(options: RequestGuardOptions): RequestGuard {
  const bare = (host: string) => host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  // Any web page can use a DNS name that resolves to 127.0.0.1. Its requests then contain that
  // name, so host names are checked on loopback addresses.
  const here = isLoopback(bare(options.host));
  const section = options.isAdmin ? "admin" : "listen";
  const names =
    here || options.isAdmin
      ? new Set(["localhost", "127.0.0.1", "::1", options.host, ...(options.hosts ?? [])].map(bare))
      : undefined;
  const origins = new Set((options.origins ?? []).map((origin) => origin.toLowerCase()));

  /** The last accepted `Host` header. It seldom changes between requests. */
  let known: string | undefined;

  function refuseHost(host: string | undefined): Rejection | undefined {
    if (host !== undefined && host === known) return undefined;
    const name = AUTHORITY.exec(host ?? "")?.[1];
    if (name === undefined)
      return badRequest("host_invalid", "Missing or invalid Host header: send exactly one.");
    const numeric = options.isAdmin && !here && isIP(bare(name)) !== 0;
    if (names && !numeric && !names.has(bare(name)))
      return {
        status: 421,
        code: "host_unknown",
        message: `The host "${name}" is not allowed. Use localhost, or add the name to ${section}.hosts.`,
      };
    known = host;
    return undefined;
  }

  function refuseOrigin(
    origin: string | undefined,
    host: string | undefined,
  ): Rejection | undefined {
    if (origin === undefined || origins.has(origin)) return undefined;
    if (options.isAdmin) {
      const own = host?.toLowerCase();
      return origin === `http://${own}` || origin === `https://${own}`
        ? undefined
        : ORIGIN_REJECTED;
    }
    return {
      status: 403,
      code: "origin_not_allowed",
      message:
        "Requests from web pages are not allowed. To allow this origin, add it to " +
        "listen.origins.",
    };
  }

  return {
    check(req) {
      const { headers, rawHeaders } = req;
      if (req.httpVersion !== "1.1" && req.httpVersion !== "1.0")
        return { status: 505, code: "http_version", message: "Use HTTP/1.1." };
      if (rawHeaders.length > options.maxHeaders * 2)
        return {
          status: 431,
          code: BOUNDS.headers.error[1],
          message: boundMessage("headers", options.maxHeaders),
        };
      const twice = findRepeatedHeader(rawHeaders);
      if (twice !== undefined)
        return badRequest("header_repeated", `The header "${twice}" occurs twice. Send it once.`);
      return (
        checkFraming(req) ??
        refuseHost(headers.host) ??
        checkTarget(req) ??
        refuseOrigin(headers.origin?.toLowerCase(), headers.host)
      );
    },
  };
}

const ORIGIN_REJECTED: Rejection = {
  status: 403,
  code: "origin_not_allowed",
  message: "Requests from other web pages are not allowed.",
};

const badRequest = (code: string, message: string): Rejection => ({ status: 400, code, message });

function findRepeatedHeader(rawHeaders: readonly string[]): string | undefined {
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const mark = SINGLE_HEADERS.get(name) ?? 0;
    if ((seen & mark) !== 0) return name;
    seen |= mark;
  }
  return undefined;
}

/** Rejects a request whose body length is ambiguous, or whose transfer coding is not `chunked`. */
function checkFraming(req: IncomingMessage): Rejection | undefined {
  const { headers } = req;
  const coding = headers["transfer-encoding"];
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked" || req.httpVersion !== "1.1")
      return badRequest(
        "transfer_encoding",
        "Invalid Transfer-Encoding: only chunked is supported.",
      );
    if (headers["content-length"] !== undefined)
      return badRequest("framing_conflict", "Send Content-Length or Transfer-Encoding, not both.");
  }
  if (headers["content-encoding"] !== undefined)
    return {
      status: 415,
      code: "content_encoding",
      message: "Content-Encoding is not supported. Send the body uncompressed.",
    };
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== "100-continue")
    return {
      status: 417,
      code: "expectation",
      message: "Invalid Expect header: only 100-continue is supported.",
    };
  return undefined;
}

function checkTarget(req: IncomingMessage): Rejection | undefined {
  if (req.method === "TRACE" || req.method === "CONNECT")
    return { status: 405, code: "method", message: `${req.method} is not allowed.` };
  const target = req.url ?? "";
  if (target.startsWith("/") || (target === "*" && req.method === "OPTIONS")) return undefined;
  const [, authority, path] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target) ?? [];
  if (authority === undefined || authority.toLowerCase() !== req.headers.host?.toLowerCase())
    return badRequest(
      "target",
      "The request target must be a path or contain the same host as the Host header.",
    );
  req.url = path!.startsWith("/") ? path! : `/${path!}`;
  return undefined;
}
