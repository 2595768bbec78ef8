// What a failure means: for the next requests, for the operator, and in words for the client.
import type { Fault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { HostCall } from "../call.ts";
import { clientOf, retriesItself } from "../candidates/client-retries.ts";
import type { Generation } from "../generation.ts";
import { isAccount, providerOf, restful } from "./blame.ts";
import { limitScope } from "./limit-scope.ts";

const ACCOUNT = {
  upstream_auth: (provider: string) => `The gateway's credential for ${provider} was refused.`,
  upstream_quota: (provider: string) =>
    `The gateway's account with ${provider} has no credit or quota left.`,
} as const;

/** What a failure means for the next requests, and for the operator. */
export function heed(call: HostCall, fault: Fault): void {
  if (!restful(fault)) return;
  const x = call.exchange;
  const { gen } = x["~"];
  gen.rests.failed(call.candidate, fault, {
    pass: call.pass,
    started: call.started,
    who: clientOf(x),
    request: x.id,
    repeated: retriesItself(x),
    unsent: call.stage === "unsent",
    scope: limitScope(fault),
  });
  if (!isAccount(fault.kind)) return;
  gen.log.warn(
    {
      request: call.exchange.id,
      provider: call.provider,
      credential: call.credential,
      kind: fault.kind,
      code: fault.code && /^[\w.-]{1,64}$/.test(fault.code) ? gen.mask(fault.code) : undefined,
      said: quotes(call, fault.message) ? undefined : gen.mask(fault.message),
    },
    "the provider refused its credential",
  );
}

/** A message that shares this many letters in a row with the request quotes it. */
const OWN = 12;
/** A longer body is not searched. */
const SEARCHED = 64 * 1024;
const HEARD = 500;

/** Providers quote what they were sent, and what people write is in no log. */
function quotes({ exchange: x }: HostCall, message: string): boolean {
  const { received } = x["~"];
  if (x.privacy !== "off" || message.length > HEARD || !received || received.bytes > SEARCHED)
    return true;
  const sent = JSON.stringify(received.body);
  const said = JSON.stringify(message).slice(1, -1);
  for (let i = 0; i + OWN <= said.length; i++)
    if (sent.includes(said.slice(i, i + OWN))) return true;
  return said.length < OWN && sent.includes(said);
}

/** As a client may read it: which provider failed, in its words, without a secret, and nothing of the operator's account. */
export function shown(gen: Generation, fault: Fault): Fault {
  const provider = providerOf(fault);
  if (isAccount(fault.kind))
    return {
      kind: fault.kind,
      code: fault.kind,
      message: ACCOUNT[fault.kind](provider ?? "the provider"),
    };
  const { code, param, details } = fault;
  return {
    ...fault,
    message: gen.mask(provider === undefined ? fault.message : `${provider}: ${fault.message}`),
    ...(code !== undefined && { code: gen.mask(code) }),
    ...(param !== undefined && { param: gen.mask(param) }),
    ...(details && { details: gen.masked(details) as JsonObject }),
  };
}
