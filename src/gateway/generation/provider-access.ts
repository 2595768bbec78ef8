// A provider's own way out: relative to its base, the credential only to origins that it is bound to.
import { Agent, type Dispatcher } from "undici";
import { BOUNDS } from "../../lib/bounds.ts";
import { guard } from "../../lib/egress.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { ProviderAccess } from "../../plugin/call.ts";
import type { Auth, Reach } from "../../plugin/provider.ts";
import type { Credential } from "../../walk/mounted.ts";
import type { Generation } from "../../walk/generation.ts";
import { OutgoingRequest } from "../../walk/upstream/outgoing-request.ts";
import { scan } from "../../lib/json.ts";

const NO_BODY = new Set([101, 204, 205, 304]);

/** Dials what it is told to: for addresses that the operator or the plugin's author wrote. */
const inside = new Agent({ connect: { timeout: 5_000 }, keepAliveTimeout: 1_000 });
/** Dials only what is on the public internet: for addresses that a client or an upstream wrote. */
const outside = new Agent({ connect: guard().connect, keepAliveTimeout: 1_000 });

export interface LineOptions {
  reach: Partial<Reach<unknown>> | undefined;
  dispatcher: Dispatcher | undefined;
  credential: Credential;
  /** Reached as they are. */
  origins?: ReadonlySet<string>;
  signal: AbortSignal;
  /** Of one answer. */
  maxBytes?: number;
  /** The last word on what leaves; of a call, its prepare hooks. */
  prepare?: (out: OutgoingRequest) => void;
}

export function createLine(of: LineOptions): ProviderAccess {
  return {
    credential: of.credential.name,
    signal: of.signal,
    async fetch(to, init = {}) {
      const base = of.reach?.base;
      const url =
        base === undefined
          ? new URL(to)
          : new URL(relative(String(to)), `${base.replace(/\/+$/, "")}/`);
      const bound = base !== undefined && isBound(url, of.reach!);
      const prepared = prepare(of, url, init);
      const headers: Record<string, string | undefined> = { ...prepared.headers };
      const signal = init.signal ? AbortSignal.any([init.signal, of.signal]) : of.signal;
      const body = prepared.body;
      if (bound)
        Object.assign(
          headers,
          await credentialed(of.reach!.auth ?? "none", of.credential, {
            method: init.method ?? "GET",
            url,
            headers,
            body,
            signal,
          }),
        );
      try {
        const answer = await wayTo(url, of).request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: (init.method ?? "GET") as Dispatcher.HttpMethod,
          headers: headers as Record<string, string>,
          body,
          signal,
        });
        return await toResponse(answer, of.maxBytes ?? BOUNDS.answer.most);
      } catch (cause) {
        if (faultOf(cause)) throw cause;
        if (signal.aborted) fail("canceled", "The request was given up.", { cause });
        const { code = "", message } = cause as Error & { code?: string };
        if (code.startsWith("address_"))
          return fail(
            "upstream",
            `${message} An option that its plugin marks x-origin can name it.`,
            { code, cause },
          );
        const who = of.reach ? "The provider" : `What ${url.origin} stands for`;
        // Node's words have addresses in them.
        return fail("upstream", `${who} cannot be reached: ${code || "the connection broke"}.`, {
          code: "connect_failed",
          cause,
        });
      }
    },
  };
}

/** To its base by the endpoint's own pool; to what was named as it is; anywhere else by the guard. */
function wayTo(url: URL, { reach, dispatcher, origins }: LineOptions): Dispatcher {
  const { base, origins: bound = [] } = reach ?? {};
  if (dispatcher && base !== undefined && url.origin === new URL(base).origin) return dispatcher;
  const named = (origin: string) => !origin.includes("*") && new URL(origin).origin === url.origin;
  return origins?.has(url.origin) || bound.some(named) ? inside : outside;
}

/** A path is below the base, never beside it. */
const relative = (to: string): string => (/^https?:/i.test(to) ? to : to.replace(/^\/+/, ""));

function prepare(
  of: LineOptions,
  url: URL,
  init: NonNullable<Parameters<ProviderAccess["fetch"]>[1]>,
): { headers: HeadersOut; body: Buffer | null } {
  const raw = init.body === undefined ? null : Buffer.from(init.body);
  const headers: HeadersOut = {
    "accept-encoding": "identity",
    ...(raw && { "content-type": "application/json" }),
    ...init.headers,
  };
  if (!of.prepare || !raw) return { headers, body: raw };
  let body: unknown;
  try {
    body = JSON.parse(raw.toString());
  } catch {
    return { headers, body: raw };
  }
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return { headers, body: raw };
  const seen = scan(raw);
  const out = new OutgoingRequest({
    method: init.method ?? "POST",
    path: url.pathname,
    body: body as never,
    raw,
    spans: seen.flaw ? null : seen.spans,
  });
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) out.header(name, value);
  of.prepare(out);
  return { headers: out.headers, body: out.bytes() };
}

/** Bound: the base's own origin, and what the endpoint names besides; a * there is one or more labels of a host. */
function isBound(url: URL, reach: Partial<Reach<unknown>>): boolean {
  if (url.origin === new URL(reach.base!).origin) return true;
  return (reach.origins ?? []).some((origin) => {
    if (!origin.includes("*")) return new URL(origin).origin === url.origin;
    const [, scheme, tail] = /^(https?:)\/\/\*\.([^/*]+)$/.exec(origin) ?? [];
    return url.protocol === scheme && url.host.endsWith(`.${tail}`);
  });
}

async function credentialed(
  auth: Auth<unknown>,
  credential: Credential,
  request: Parameters<Extract<Auth<unknown>, Function>>[0],
): Promise<HeadersOut> {
  if (auth === "none") return {};
  if (typeof auth === "function") return auth(request, credential.fields);
  const secret = credential.fields[auth.field];
  return secret === undefined
    ? {}
    : { [auth.header.toLowerCase()]: `${auth.prefix ?? ""}${String(secret)}` };
}

async function toResponse(answer: Dispatcher.ResponseData, maxBytes: number): Promise<Response> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      answer.body.destroy();
      fail("upstream", `The provider's answer is larger than ${maxBytes} bytes.`, {
        code: "too_large",
      });
    }
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  return new Response(NO_BODY.has(answer.statusCode) ? null : Buffer.concat(chunks), {
    status: answer.statusCode,
    headers,
  });
}

/** As the walk asks for it: the way of one call to a native endpoint. */
export const fetchFor: Generation["fetchFor"] = (candidate, signal, prepare) => {
  const { endpoint, credential, provider } = candidate["~"];
  return createLine({
    origins: provider.origins,
    reach: endpoint.endpoint as Partial<Reach<unknown>>,
    dispatcher: endpoint.pool,
    credential,
    signal,
    prepare,
  }).fetch;
};
