// A provider's own fetch: relative to its base, with the credential for bound origins only.
import { Agent, type Dispatcher } from "undici";
import { BOUNDS } from "../../lib/bounds.ts";
import { allowed, guard } from "../../lib/egress.ts";
import type { CallTimes } from "../../config/types.ts";
import { isMetadata, namesMetadata } from "../../lib/metadata.ts";
import type { ProxyRoute } from "../../lib/proxy.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { Body, HeadersOut } from "../../model/values.ts";
import type { ProviderAccess } from "../../plugin/call.ts";
import type { Auth, AuthRefusal, Reach } from "../../plugin/provider.ts";
import type { Credential } from "../../walk/mounted.ts";
import type { Generation } from "../../walk/generation.ts";
import { formBody } from "../../walk/form/body.ts";
import { boundaryOf, isForm } from "../../walk/form/head.ts";
import { credentialed, renewed, tokenAge } from "../../walk/upstream/credential.ts";
import { OutgoingRequest } from "../../walk/upstream/outgoing-request.ts";
import { scan } from "../../lib/json.ts";
import { classTimes } from "../../walk/upstream/times.ts";
import { lineAnswer } from "./line-answer.ts";
import { outward } from "../services/pools.ts";

const CONNECT_MS = 5_000;
/** Dials any address: for those that the operator or the plugin's author wrote. */
const inside = new Agent({ connect: outward(CONNECT_MS, undefined), keepAliveTimeout: 1_000 });
/** The same through the gateway's proxy, which there is one of. */
const proxied = new WeakMap<ProxyRoute, Agent>();

function agentTo(proxy: ProxyRoute | undefined): Agent {
  const made = proxy ? proxied.get(proxy) : inside;
  if (made) return made;
  const agent = new Agent({ connect: outward(CONNECT_MS, proxy), keepAliveTimeout: 1_000 });
  proxied.set(proxy!, agent);
  return agent;
}
/** Dials only what is on the public internet: for addresses that a client or an upstream wrote. */
const outside = new Agent({
  connect: guard((address) => !isMetadata(address) && allowed(address)).connect,
  keepAliveTimeout: 1_000,
});
/** Dials a cloud's metadata service alone. */
const metadata = new Agent({ connect: guard(isMetadata).connect, keepAliveTimeout: 1_000 });

export interface LineOptions {
  reach: Partial<Reach<unknown>> | undefined;
  dispatcher: Dispatcher | undefined;
  /** How errors name the base. Default: the provider. */
  called?: string;
  credential: Credential;
  /** Reached as they are. */
  origins?: ReadonlySet<string>;
  /** What `origins` are reached through. */
  proxy?: ProxyRoute | undefined;
  /** Whether the cloud's metadata service is reached at all. */
  metadata?: boolean;
  signal: AbortSignal;
  /** Of one answer. */
  bound?: "answer" | "modelList";
  /** Of a call, whose answer is passed on as it comes: how long its head may take, and each pause within its body. */
  times?: Pick<CallTimes, "firstByteMs" | "idleMs">;
  /** The last word on what leaves; of a call, its prepare hooks. */
  prepare?: (out: OutgoingRequest) => void;
  /** What else the base and the origins bound to it are sent, and no other address. */
  trace?: () => HeadersOut;
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
      if (bound) Object.assign(prepared.headers, of.trace?.());
      const signal = init.signal ? AbortSignal.any([init.signal, of.signal]) : of.signal;
      const { auth = "none" } = (bound && of.reach) || {};
      const unsigned: UnsignedFetch = { method: init.method ?? "GET", url, ...prepared, signal };
      const age = tokenAge(auth, of.credential);
      const answer = await signed(of, auth, unsigned);
      const refusal = () => refusalOf(answer);
      return (await renewed(auth, of.credential, age, refusal, answer.status))
        ? signed(of, auth, unsigned)
        : answer;
    },
  };
}

/** The base is reached through the endpoint's own pool, a named origin as it is, and any other address through the guard. */
function wayTo(url: URL, of: LineOptions): Dispatcher {
  const { reach, dispatcher, origins } = of;
  if (namesMetadata(url)) return of.metadata ? metadata : refuseMetadata(url.host);
  const { base, origins: bound = [] } = reach ?? {};
  if (dispatcher && base !== undefined && url.origin === new URL(base).origin) return dispatcher;
  const named = (origin: string) => !origin.includes("*") && new URL(origin).origin === url.origin;
  return origins?.has(url.origin) || bound.some(named) ? agentTo(of.proxy) : outside;
}

const refuseMetadata = (host: string): never =>
  fail(
    "upstream",
    `${host} is the cloud's metadata service, and the plugin does not declare it: needs.metadata.`,
    {
      code: "address_metadata",
    },
  );

/** A path always stands below the base. */
const relative = (to: string): string => (/^https?:/i.test(to) ? to : to.replace(/^\/+/, ""));

function prepare(
  of: LineOptions,
  url: URL,
  init: NonNullable<Parameters<ProviderAccess["fetch"]>[1]>,
): { headers: HeadersOut; body: Buffer | null } {
  const raw = init.body === undefined ? null : bytesOf(init.body);
  const headers: HeadersOut = {
    "accept-encoding": "identity",
    ...(raw && { "content-type": "application/json" }),
    ...init.headers,
  };
  if (!of.prepare || !raw) return { headers, body: raw };
  const fields = fieldsOf(raw, headers);
  if (!fields) return { headers, body: raw };
  const out = new OutgoingRequest({
    method: init.method ?? "POST",
    path: url.pathname,
    raw,
    ...fields,
  });
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) out.header(name, value);
  of.prepare(out);
  const body = out.bytes()?.whole() ?? null;
  return { headers: out.headers, body };
}

/** Bytes are sent as they lie there: a copy of each large body is what full collections are made for. */
const bytesOf = (body: string | Uint8Array): Buffer =>
  ArrayBuffer.isView(body)
    ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    : Buffer.from(body);

type Fields = Pick<ConstructorParameters<typeof OutgoingRequest>[0], "body" | "spans" | "form">;

/** What hooks can look at and edit: JSON, or a form. */
function fieldsOf(raw: Buffer, headers: HeadersOut): Fields | undefined {
  const type = headers["content-type"] ?? "";
  if (isForm(type)) {
    const boundary = boundaryOf(type);
    const seen = boundary === undefined ? undefined : formBody(raw, boundary);
    return seen && !seen.flaw ? { body: seen.body, form: seen.layout } : undefined;
  }
  let body: unknown;
  try {
    body = JSON.parse(raw.toString());
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const seen = scan(raw);
  return { body: body as Body, spans: seen.flaw ? null : seen.spans };
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

/** One request of a line, but for what signs it. */
interface UnsignedFetch {
  readonly method: string;
  readonly url: URL;
  readonly headers: HeadersOut;
  readonly body: Buffer | null;
  readonly signal: AbortSignal;
}

async function signed(
  of: LineOptions,
  auth: Auth<any>,
  unsigned: UnsignedFetch,
): Promise<Response> {
  const { method, url, body, signal } = unsigned;
  const own = await credentialed(auth, of.credential, () => ({ ...unsigned }));
  try {
    const answer = await wayTo(url, of).request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as Dispatcher.HttpMethod,
      headers: { ...unsigned.headers, ...own } as Record<string, string>,
      body,
      signal,
      ...(of.times && { headersTimeout: of.times.firstByteMs, bodyTimeout: of.times.idleMs }),
    });
    return await lineAnswer(answer, {
      bound: of.bound ?? "answer",
      passes: of.times !== undefined,
      fails: (problem) => brokenOff(of, unsigned, problem),
    });
  } catch (cause) {
    return unreachable(of, unsigned, cause);
  }
}

function unreachable(
  { reach, called = "The provider" }: LineOptions,
  { url, signal }: UnsignedFetch,
  cause: unknown,
): never {
  if (faultOf(cause)) throw cause;
  if (signal.aborted) fail("canceled", "The request was given up.", { cause });
  const { code = "", message } = cause as Error & { code?: string };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return fail("timeout", "The provider took too long.", { code: "upstream_timeout", cause });
  if (code.startsWith("address_"))
    return fail(
      "upstream",
      code === "address_metadata"
        ? `${message} Only a plugin that declares it reaches it: needs.metadata.`
        : `${message} An option that its plugin marks x-origin can name it.`,
      { code, cause },
    );
  const who = reach ? called : `What ${url.origin} stands for`;
  // Node's words have addresses in them.
  return fail("upstream", `${who} cannot be reached: ${code || "the connection broke"}.`, {
    code: "connect_failed",
    cause,
  });
}

/** What ended a body before its end. */
function brokenOff(of: LineOptions, unsigned: UnsignedFetch, cause: unknown): never {
  const { code } = cause as { code?: string };
  if (faultOf(cause) || unsigned.signal.aborted || code === "UND_ERR_BODY_TIMEOUT")
    return unreachable(of, unsigned, cause);
  return fail("upstream", "The provider's answer broke off.", { code: "truncated", cause });
}

/** What a line's answer says to a scheme; the plugin that asked may read it all the same. */
async function refusalOf(answer: Response): Promise<Omit<AuthRefusal, "signal">> {
  const body = Buffer.from(await answer.clone().arrayBuffer()).subarray(0, BOUNDS.refusal.most);
  return { status: answer.status, headers: Object.fromEntries(answer.headers), body };
}

/** As the walk asks for it: the way of one call to a native endpoint. */
export const fetchFor: Generation["fetchFor"] = (candidate, signal, { prepare, trace }) => {
  const { endpoint, credential, provider } = candidate["~"];
  return createLine({
    origins: provider.origins,
    metadata: provider.metadata,
    proxy: provider.proxy,
    reach: endpoint.endpoint as Partial<Reach<unknown>>,
    dispatcher: endpoint.pool,
    credential,
    signal,
    prepare,
    trace,
    times: classTimes(candidate),
  }).fetch;
};
