// How long one call may take: what the operator says of its class, and what its client says.
import type { CallTimes } from "../../config/gateway-config.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";

/** `hinted`: the total is the client's own wish. */
export interface EffectiveTimeouts extends CallTimes {
  readonly isClientLimit?: boolean;
}

/** The operator's for its class, in all for all calls of a request; a client's own hints lower them. */
export function timeoutsFor(call: HostCall): EffectiveTimeouts {
  const { timeouts } = call.candidate["~"].provider;
  const times = timeouts.classes.get(timeoutClassOf(call)) ?? timeouts;
  return applyClientLimits(
    subtractElapsed(times, call.startedAt - call.requestFirstCallAt),
    call.exchange,
  );
}

/** The operator's for the class of a candidate whose answer is streamed. */
export function streamTimeoutsFor({ info, "~": { provider } }: HostCandidate): CallTimes {
  const { timeouts } = provider;
  return timeouts.classes.get(timeoutClassOf({ info, stream: true })) ?? timeouts;
}

/** What is left of the total for a further call. `began`: when the first one did. */
export function remainingMs(
  x: HostExchange,
  { info, "~": { provider } }: HostCandidate,
  began: number,
): number {
  const { timeouts } = provider;
  const times = timeouts.classes.get(timeoutClassOf({ info, stream: x.stream })) ?? timeouts;
  return applyClientLimits(subtractElapsed(times, performance.now() - began), x).totalMs;
}

const subtractElapsed = (times: CallTimes, passed: number): CallTimes =>
  passed > 0 ? { ...times, totalMs: Math.max(0, times.totalMs - passed) } : times;

/** Counts a wait for a provider. Two calls at once are one wait. */
export function addProviderWait({ "~": state }: HostExchange, from: number, until: number): void {
  state.externalWaitMs += Math.max(0, until - Math.max(from, state.externalWaitEnd));
  state.externalWaitEnd = until;
}

const CHAT = "chat";
/** Classes of chat calls. */
const CHAT_CLASSES = { quick: "quick", reasoning: "reasoning" } as const;

/** A model that may reason is silent first, and a whole answer comes when all of it is there. */
export const timeoutClassOf = ({ info, stream }: { info: ModelInfo; stream: boolean }): string => {
  if (info.operation !== CHAT) return info.operation;
  return stream && info.can?.reasoning === false ? CHAT_CLASSES.quick : CHAT_CLASSES.reasoning;
};

/** Every class that `classOf` returns for models of these kinds. */
export const classesOf = (kinds: Iterable<string>): readonly string[] => [
  ...Object.values(CHAT_CLASSES),
  ...[...kinds].filter((kind) => kind !== CHAT),
];

/**
 * SDKs say how long they wait, for all of it or between two reads of their socket. An answer after that reaches no client. A
 * stream has pings, so only a whole answer is silent for that client until it is all there.
 */
function applyClientLimits(times: CallTimes, x: HostExchange): EffectiveTimeouts {
  const { req, startedAt } = x["~"];
  const clientTotalMs = parseSecondsToMs(req.headers["x-stainless-timeout"]);
  const clientReadMs = parseSecondsToMs(req.headers["x-stainless-read-timeout"]);
  if (clientTotalMs === undefined && clientReadMs === undefined) return times;
  const elapsedMs = performance.now() - startedAt;
  const most =
    Math.min(clientTotalMs ?? Infinity, x.stream ? Infinity : (clientReadMs ?? Infinity)) -
    elapsedMs;
  return most < times.totalMs ? { ...times, totalMs: most, isClientLimit: true } : times;
}

function parseSecondsToMs(said: string | string[] | undefined): number | undefined {
  const ms = said === undefined ? NaN : Number(said) * 1000;
  return ms > 0 ? ms : undefined;
}
