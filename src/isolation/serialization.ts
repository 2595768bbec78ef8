// The isolation floor: plugins outside the gateway. What may stand there, by name; and requests and calls as plain data, for a frame.
// May import: lib, model, plugin, config. May not: the loader, the walk, the gateway.
import { isFilePart, type Body } from "../model/values.ts";
import type { Call, Candidate } from "../plugin/call.ts";
import type { Context } from "../plugin/context.ts";
import type { RequestHead, Exchange } from "../plugin/exchange.ts";
import type { Hooks } from "../plugin/middleware.ts";
import type { PluginKind } from "../plugin/define.ts";

/** The kinds of plugins. */
export const ISOLATABLE_KINDS = ["middleware"] as const satisfies readonly PluginKind[];

/** Hooks that are waited for, and those that are told of events. `charge` and `prepare` answer at once. */
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

/** What the context has there. The rest answers at once, of things that are here. */
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

/** Without the bytes of files, which are the gateway's. */
export const serializeBody = (body: Body): Body =>
  Object.fromEntries(
    Object.entries(body).map(([field, value]) => [
      field,
      [value].flat().some(isFilePart) ? undefined : value,
    ]),
  );

/** Most have none, and it would be made only to say that. */
const queryTextOf = (x: RequestHead & { readonly hasQuery?: boolean }): string =>
  x.hasQuery === false ? "" : x.query.toString();

/** The head, and what was read of the body: all but the request, which is long and goes along once. */
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

/** The files of a locked package by their real paths. Plain data: it crosses to the child. */
export interface LockedModules {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
}
