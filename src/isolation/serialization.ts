// Serializes requests and calls as plain data for frames, and lists what isolated plugins support.
// May import lib, model, plugin, and config. Must not import the loader, the pipeline, or the
// gateway.
import { isFilePart, type Body } from "../model/values.ts";
import type { Call, Candidate } from "../plugin/call.ts";
import type { Context } from "../plugin/context.ts";
import type { RequestHead, Exchange } from "../plugin/exchange.ts";
import type { Hooks } from "../plugin/middleware.ts";
import type { PluginKind } from "../plugin/define.ts";

/** Kinds of plugins that can be isolated. */
export const ISOLATABLE_KINDS = ["middleware"] as const satisfies readonly PluginKind[];

/**
 * Hooks that can be isolated: asynchronous hooks and hooks that receive events. `charge` and
 * `prepare` are synchronous.
 */
export const ISOLATABLE_HOOKS = [
  "admit",
  "edit",
  "rewrite",
  "inspect",
  "route",
  "attempt",
  "event",
  "watch",
  "settle",
] as const satisfies readonly (keyof Hooks)[];
export type IsolatableHook = (typeof ISOLATABLE_HOOKS)[number];

/**
 * Members of the context that isolated plugins have. The other members return in-process values
 * synchronously.
 */
export const ISOLATED_CONTEXT_MEMBERS = [
  "id",
  "log",
  "signal",
  "own",
  "onDispose",
  "runEvery",
  "shared",
  "fetch",
  "sendSubrequest",
  "keys",
  "env",
  "readFile",
  "stateDir",
] as const satisfies readonly (keyof Context)[];

/** Returns a body without the bytes of its files, which are not sent to the plugin. */
export const serializeBody = (body: Body): Body =>
  Object.fromEntries(
    Object.entries(body).map(([field, value]) => [
      field,
      [value].flat().some(isFilePart) ? undefined : value,
    ]),
  );

/** Most requests have no query. Parsing the URL only to determine this is avoided. */
const queryTextOf = (x: RequestHead & { readonly hasQuery?: boolean }): string =>
  x.hasQuery === false ? "" : x.query.toString();

/**
 * Serializes the request head and the facts about the body. The request itself is large and is sent
 * separately, once.
 */
export function serializeExchange(x: RequestHead & Partial<Exchange>) {
  return {
    id: x.id,
    frontend: x.frontend,
    method: x.method,
    path: x.path,
    address: x.address,
    certificate: x.certificate,
    params: x.params,
    headers: x.headers,
    query: queryTextOf(x),
    credentialSources: x.credentialSources,
    cookies: x.cookies,
    identity: x.identity,
    limits: x.limits,
    privacy: x.privacy,
    ...(x.model && {
      protocol: x.protocol,
      operation: x.operation,
      actionType: x.actionType,
      action: x.action,
      model: x.model,
      stream: x.stream,
      features: x.features,
      inputSize: x.inputSize,
    }),
  };
}

export const serializeCandidate = (of: Candidate) => ({
  id: of.id,
  provider: of.provider,
  protocol: of.protocol,
  mode: of.mode,
  model: of.model,
  info: of.info,
  credential: of.credential,
  policy: of.policy,
  weight: of.weight,
  cooldown: of.cooldown,
});

export const serializeCall = (call: Call) => ({
  ...serializeCandidate(call),
  attemptId: call.attemptId,
  n: call.n,
  actionType: call.actionType,
  action: call.action,
  params: call.params,
});

/**
 * The files of a locked package by real path. Plain data, because it is sent to the child process.
 */
export interface LockedModules {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
}
