// Whose failure a fault is: what only the host may say of it. It stands beside faults and not in them, for what is in them
// comes from codecs, plugins and upstreams, and none of these may switch off a fallback or send everybody elsewhere.
import { faultOf, type Fault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { HostCall } from "../call.ts";
import type { Generation } from "../generation.ts";

/**
 * caller: a limit or a deadline of whoever asked. target: the line to upstream, or its refusal. answer: what came where an
 * answer should. A fault of nobody's is a hook's or the gateway's own.
 */
type Who = "caller" | "target" | "answer";
interface Blame {
  readonly who: Who;
  provider: string | undefined;
}

const blames = new WeakMap<Fault, Blame>();

/** Who is to blame is said once, nearest to where it happened; which provider it was may be known only further out. */
export function blame<P>(problem: P, who: Who, provider?: string): P {
  const fault = faultOf(problem);
  if (!fault) return problem;
  const said = blames.get(fault);
  if (said) said.provider ??= provider;
  else blames.set(fault, { who, provider });
  return problem;
}

/** No other candidate could do better, and no candidate did worse. */
export const isCallers = (fault: Fault): boolean => blames.get(fault)?.who === "caller";

/** Said by the provider, in its refusal or in its answer; not by a hook and not by the gateway. */
export const isProviders = (fault: Fault): boolean => {
  const who = blames.get(fault)?.who;
  return who === "target" || who === "answer";
};

export const providerOf = (fault: Fault): string | undefined => blames.get(fault)?.provider;

/**
 * Whether others are kept away from who failed. An answer that cannot be read may have come so because of what was asked:
 * one that says in a machine's words what is the matter speaks of the target, and any other of itself.
 */
function restful(fault: Fault): boolean {
  const who = blames.get(fault)?.who;
  // Read by a hook, in a header of upstream's.
  if (fault.kind === "attestation") return true;
  return who === "target" || (who === "answer" && fault.kind !== "upstream");
}

const ACCOUNT = {
  upstream_auth: (provider: string) => `The gateway's credential for ${provider} was refused.`,
  upstream_quota: (provider: string) =>
    `The gateway's account with ${provider} has no credit or quota left.`,
} as const;

const isAccount = (kind: string): kind is keyof typeof ACCOUNT => Object.hasOwn(ACCOUNT, kind);

/** Nobody can mend it by asking again. */
export const isHopeless = (fault: Fault): boolean => isAccount(fault.kind);

/** What a failure means for the next requests, and for the operator. */
export function heed(call: HostCall, fault: Fault): void {
  if (!restful(fault)) return;
  const { gen } = call.exchange["~"];
  gen.rests.failed(call.candidate, fault);
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

/** So many letters in a row that stand in the request too are its own. */
const OWN = 12;
/** What is longer is not searched. */
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

/** As a client may read it: who failed, in whose words, without a secret, and nothing of the operator's account. */
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
