import { setTimeout as sleep } from "node:timers/promises";
import type { HeadersOut } from "../../model/values.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import type { Auth, Endpoint, EndpointConnection } from "../../plugin/provider.ts";
import { untracked } from "../resource-leaks.ts";
import type { TestUpstream } from "../upstream/upstream.ts";

/**
 * Creates a client that always connects to the fake upstream, whatever the requested address is.
 * Path and query are kept, and the original address is sent in `x-meant-for`. Credentials are added
 * as the host adds them.
 */
export function createProviderClient(
  up: TestUpstream,
  endpoint: Endpoint,
  credential: Readonly<Record<string, unknown>>,
  signal: AbortSignal = new AbortController().signal,
): ProviderClient {
  return {
    credential: "default",
    signal,
    fetch: (url, init = {}) =>
      untracked(async () => {
        const meant = resolveEndpointUrl(endpoint, url);
        const headers = { ...init.headers };
        const signals = [signal, init.signal].filter((one) => one !== undefined);
        const request = {
          method: init.method ?? "GET",
          url: meant,
          headers,
          body: init.body === undefined ? null : Buffer.from(init.body),
          signal,
        };
        if (isAllowedOrigin(endpoint, meant))
          Object.assign(headers, await signRequest(endpoint, request, credential));
        const to = new URL(meant.pathname + meant.search, up.url);
        return fetch(to, {
          method: request.method,
          headers: { ...withoutUndefined(headers), "x-meant-for": meant.href },
          body: init.body ?? null,
          signal: AbortSignal.any(signals),
          redirect: "manual",
        } as RequestInit);
      }),
  };
}

/**
 * Returns the URL of an endpoint's fetch: an absolute URL unchanged, and any other URL appended to
 * the endpoint's base. Throws if there is no base.
 */
export function resolveEndpointUrl(endpoint: Endpoint, url: string | URL): URL {
  const text = String(url);
  if (/^[a-z]+:/i.test(text)) return new URL(text);
  if (endpoint.base === undefined)
    throw new Error(`${text} is relative, but the endpoint has no base URL.`);
  return new URL(endpoint.base.replace(/\/?$/, "/") + text.replace(/^\//, ""));
}

function isAllowedOrigin(
  { base, origins = [] }: Partial<EndpointConnection<unknown>>,
  { origin, protocol, host }: URL,
): boolean {
  if (base !== undefined && new URL(base).origin === origin) return true;
  return origins.some((one) => {
    const [scheme, name = ""] = one.split("://");
    if (`${scheme}:` !== protocol) return false;
    return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
  });
}

/**
 * Returns the headers that an endpoint's authentication adds to a request. The caller receives what
 * a signing function throws.
 */
export async function signRequest(
  { auth }: Partial<EndpointConnection<any>>,
  request: {
    method: string;
    url: URL;
    headers: HeadersOut;
    body: Buffer | null;
    signal: AbortSignal;
  },
  credential: Readonly<Record<string, unknown>>,
): Promise<HeadersOut> {
  if (auth === undefined || auth === "none") return {};
  const sign = typeof auth === "function" ? auth : auth.sign;
  if (sign) return sign(Object.freeze({ ...request }), credential);
  const { header, prefix = "", field } = auth as Extract<Auth<any>, { header: string }>;
  const value = credential[field];
  return value === undefined ? {} : { [header]: `${prefix}${String(value)}` };
}

const withoutUndefined = (headers: HeadersOut): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );

/** Returns whether the work settles within `withinMs` milliseconds. The promise never rejects. */
export async function settlesWithin(
  work: Promise<unknown>,
  withinMs: number,
): Promise<"settled" | "timed_out"> {
  const done = work.then(
    () => "settled" as const,
    () => "settled" as const,
  );
  const timer = new AbortController();
  const late = sleep(withinMs, "timed_out" as const, { signal: timer.signal }).catch(
    () => "timed_out" as const,
  );
  const first = await Promise.race([done, late]);
  timer.abort();
  return first;
}
