// The endpoints of OAuth 2.0 that a device calls: RFC 8414, RFC 8628, RFC 6749, and RFC 7009. A
// client may send unknown parameters, which are ignored.
import {
  getFault,
  type Context,
  type Json,
  type RequestHead,
  type Route,
  type RouteResponse,
} from "tollgate/plugin";
import type { BrowserFlow } from "./browser-flow.ts";
import { GRANT_TTL_S, type DeviceGrants } from "./device-grants.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { Sessions } from "./sessions.ts";

export const PATHS = {
  metadata: "/.well-known/oauth-authorization-server",
  device: "/oauth/device_authorization",
  token: "/oauth/token",
  revoke: "/oauth/revoke",
  callback: "/oauth/callback",
  page: "/device",
} as const;

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
const DEVICE_PROBLEMS = {
  authorization_pending: "The sign-in is not approved yet.",
  slow_down: "Wait longer between two requests.",
  access_denied: "The sign-in was denied.",
  expired_token: "The device code is unknown, was used, or has expired. Sign in again.",
} as const;

/** Maximum size of a form, in bytes. */
const MAX_FORM_BYTES = 16_384;
const MAX_SURFACE_LENGTH = 60;
/** Time after which a device may retry while too many sign-ins wait, in seconds. */
const REFUSED_RETRY_S = 60;

export interface OauthOptions {
  readonly ctx: Pick<Context, "log">;
  readonly origin: string;
  readonly grants: DeviceGrants;
  readonly sessions: Sessions;
  readonly browser: BrowserFlow;
  readonly starts: RateLimit;
  readonly intervalS: number;
  readonly notice: string | undefined;
  readonly addressOf: (x: RequestHead) => string;
}

type Form = URLSearchParams | undefined;
type Answer = RouteResponse | Promise<RouteResponse>;

/** A route with a form. The form is undefined if it is too large. */
const post = (path: string, handle: (x: RequestHead, form: Form) => Answer): Route => ({
  allowUnauthenticated: true,
  method: "POST",
  path,
  body: "bytes",
  handle: (x: RequestHead, body: Buffer) => handle(x, parseForm(body)),
});

/** All routes of the sign-in. Any client may call them. */
export function oauthRoutes(of: OauthOptions): readonly Route[] {
  const { browser } = of;
  const cookies = [browser.cookieName];
  const open = { allowUnauthenticated: true } as const;
  const { page } = PATHS;
  return [
    { ...open, method: "GET", path: PATHS.metadata, handle: () => metadata(of) },
    post(PATHS.device, (x, form) => authorize(of, x, form)),
    post(PATHS.token, (_, form) => issueToken(of, form)),
    post(PATHS.revoke, (_, form) => revoke(of, form)),
    { ...open, method: "GET", path: page, handle: (x) => browser.showForm(x) },
    post(page, (x, form) => browser.submitCode(x, form ?? new URLSearchParams())),
    { ...open, cookies, method: "GET", path: PATHS.callback, handle: (x) => browser.finish(x) },
    { ...post(`${page}/approve`, (x) => browser.decide(x, "approved")), cookies } as Route,
    { ...post(`${page}/deny`, (x) => browser.decide(x, "denied")), cookies } as Route,
  ];
}

const metadata = ({ origin }: OauthOptions): RouteResponse =>
  json(200, {
    issuer: origin,
    device_authorization_endpoint: origin + PATHS.device,
    token_endpoint: origin + PATHS.token,
    revocation_endpoint: origin + PATHS.revoke,
    response_types_supported: [],
    grant_types_supported: [DEVICE_GRANT, "refresh_token"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    gateway_protocol_version: 1,
  });

async function authorize(of: OauthOptions, x: RequestHead, form: Form): Promise<RouteResponse> {
  if (!form) return problem(400, "invalid_request", "The body must be a form of up to 16 KiB.");
  const address = of.addressOf(x);
  const wait = of.starts.take(address);
  if (wait !== undefined)
    return tooMany(
      `Too many sign-ins from this address. Wait ${wait} s before the next one.`,
      wait,
    );
  const surface = form
    .get("surface")
    ?.replace(/[^\w .-]/g, "")
    .slice(0, MAX_SURFACE_LENGTH);
  const grant = await of.grants.start({
    address,
    surface: surface === "" ? undefined : surface,
  });
  if (!grant)
    return tooMany(
      "Too many sign-ins of this network wait for approval. Retry in a few minutes.",
      REFUSED_RETRY_S,
    );
  const { userCode, deviceCode } = grant;
  const page = of.origin + PATHS.page;
  return json(200, {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${userCode}`,
    expires_in: GRANT_TTL_S,
    interval: of.intervalS,
    ...(of.notice !== undefined && { login_notice: of.notice }),
  });
}

async function issueToken(of: OauthOptions, form: Form): Promise<RouteResponse> {
  const type = form?.get("grant_type");
  if (type === "refresh_token") return refresh(of, form?.get("refresh_token") ?? "");
  if (type !== DEVICE_GRANT)
    return problem(
      400,
      type == null ? "invalid_request" : "unsupported_grant_type",
      `\`grant_type\` must be ${DEVICE_GRANT} or refresh_token.`,
    );
  const redeemed = await of.grants.redeem(form?.get("device_code") ?? "");
  if (typeof redeemed === "string") return problem(400, redeemed, DEVICE_PROBLEMS[redeemed]);
  try {
    return json(200, { ...(await of.sessions.start(redeemed)) });
  } catch (error) {
    const fault = getFault(error);
    if (fault?.kind !== "forbidden") throw error;
    of.ctx.log.info({ code: fault.code }, "sign-in denied");
    return problem(400, "access_denied", fault.message);
  }
}

async function refresh(of: OauthOptions, token: string): Promise<RouteResponse> {
  const issued = await of.sessions.refresh(token);
  if (issued === "invalid_grant")
    return problem(401, issued, "The session has ended. Sign in again.");
  if (issued === "temporarily_unavailable")
    return problem(503, issued, "The identity provider is not reachable. Retry later.", {
      "retry-after": "5",
    });
  return json(200, { ...issued });
}

/** Answers the same for every token: RFC 7009, section 2.2. */
async function revoke(of: OauthOptions, form: Form): Promise<RouteResponse> {
  const token = form?.get("token");
  if (token == null) return problem(400, "invalid_request", "Missing `token`.");
  await of.sessions.revoke(token);
  return json(200, {});
}

function parseForm(body: Buffer): Form {
  return body.length > MAX_FORM_BYTES ? undefined : new URLSearchParams(body.toString("utf8"));
}

const tooMany = (description: string, retryAfterS: number): RouteResponse =>
  problem(429, "slow_down", description, { "retry-after": String(retryAfterS) });

const NO_STORE = { "cache-control": "no-store" };

const json = (
  status: number,
  body: { readonly [name: string]: Json },
  headers?: Record<string, string>,
): RouteResponse => ({ status, body, headers: { ...NO_STORE, ...headers } });

const problem = (
  status: number,
  error: string,
  description: string,
  headers?: Record<string, string>,
): RouteResponse => json(status, { error, error_description: description }, headers);
