// Records which party caused a fault. Only the host may decide this. The record is kept outside the
// fault because codecs, plugins, and providers write the fields of faults. None of these may
// disable a fallback or redirect other requests.
import { isBoundExceeded } from "../../model/bound-exceeded.ts";
import { getFault, type ErrorKind, type Fault } from "../../model/error.ts";

/**
 * The party that caused a fault. `caller`: a limit or deadline of the client. `gateway`: the
 * gateway rejects the request because it is full. `target`: the connection to the provider, or the
 * provider's rejection. `answer`: an unusable response. A fault without a source was caused by a
 * hook.
 */
type FaultSource = "caller" | "gateway" | "target" | "answer";
interface FaultAttribution {
  readonly source: FaultSource;
  provider: string | undefined;
}

const attributions = new WeakMap<Fault, FaultAttribution>();

/**
 * Attributes a fault to a source. The first attribution, closest to the origin, wins. The provider
 * may be added later, where it is known.
 */
export function attributeFault<P>(problem: P, source: FaultSource, provider?: string): P {
  const fault = getFault(problem);
  if (!fault) return problem;
  const known = attributions.get(fault);
  if (!known) attributions.set(fault, { source, provider });
  else if (known.source !== "gateway") known.provider ??= provider;
  return problem;
}

/**
 * Whether the client or the gateway caused the fault. No other candidate could do better, and no
 * candidate is to blame.
 */
export const isLocalFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "caller" || side === "gateway";
};

/**
 * Whether the provider caused the fault, through its rejection or its response. Hooks and the
 * gateway did not.
 */
export const isProviderFault = (fault: Fault): boolean => {
  const side = attributions.get(fault)?.source;
  return side === "target" || side === "answer";
};

export const faultProvider = (fault: Fault): string | undefined =>
  attributions.get(fault)?.provider;

/**
 * Whether the fault counts against the target's health. An unreadable response counts like a server
 * error. The request itself may have caused a single one, so one alone does not divert other
 * requests. A response that exceeds a bound of this gateway says nothing about the target.
 */
export function countsAgainstTarget(fault: Fault): boolean {
  const side = attributions.get(fault)?.source;
  // A hook found this in a header of the provider's response.
  if (fault.kind === "attestation") return true;
  return side === "target" || (side === "answer" && !isBoundExceeded(fault));
}

/** Whether the error concerns the gateway's account with the provider, not a client. */
export const isProviderAccountError = (
  kind: ErrorKind,
): kind is "upstream_auth" | "upstream_quota" =>
  kind === "upstream_auth" || kind === "upstream_quota";

/** Whether a client's retry cannot succeed. */
export const isRetryPointless = (fault: Fault): boolean => isProviderAccountError(fault.kind);
