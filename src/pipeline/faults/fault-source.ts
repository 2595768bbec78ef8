// Whose failure a fault is: what only the host may say of it. It stands beside faults and not in them, for what is in them
// comes from codecs, plugins and upstreams, and none of these may switch off a fallback or send other requests elsewhere.
import { isBoundExceeded } from "../../model/bound-exceeded.ts";
import { getFault, type ErrorKind, type Fault } from "../../model/error.ts";

/**
 * caller: a limit or a deadline of the client. gateway: it refuses by itself, because it is full. target: the line to
 * upstream, or its refusal. answer: what came where an answer should. A fault that none of them is blamed for is a hook's.
 */
type FaultSource = "caller" | "gateway" | "target" | "answer";
interface FaultAttribution {
  readonly source: FaultSource;
  provider: string | undefined;
}

const attributions = new WeakMap<Fault, FaultAttribution>();

/** The side is said once, nearest to where it happened; which provider it was may be known only further out. */
export function attributeFault<P>(problem: P, source: FaultSource, provider?: string): P {
  const fault = getFault(problem);
  if (!fault) return problem;
  const known = attributions.get(fault);
  if (!known) attributions.set(fault, { source, provider });
  else if (known.source !== "gateway") known.provider ??= provider;
  return problem;
}

/** No other candidate could do better, and no candidate did worse. */
export const isLocalFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "caller" || side === "gateway";
};

/** Said by the provider, in its refusal or in its answer; not by a hook and not by the gateway. */
export const isProviderFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "target" || side === "answer";
};

export const faultProvider = (fault: Fault): string | undefined =>
  attributions.get(fault)?.provider;

/**
 * Whether it counts against what failed. An answer that cannot be read does, as an error of the server would: one alone may be the
 * fault of its request, and keeps no other away. An answer that is more than this gateway takes says nothing of its target.
 */
export function countsAgainstTarget(fault: Fault): boolean {
  const side = attributions.get(fault)?.source;
  // Read by a hook, in a header of upstream's.
  if (fault.kind === "attestation") return true;
  return side === "target" || (side === "answer" && !isBoundExceeded(fault));
}

/** Of the gateway's account with the provider, not of a client. */
export const isProviderAccountError = (
  kind: ErrorKind,
): kind is "upstream_auth" | "upstream_quota" =>
  kind === "upstream_auth" || kind === "upstream_quota";

/** No client can mend it by asking again. */
export const isRetryPointless = (fault: Fault): boolean => isProviderAccountError(fault.kind);
