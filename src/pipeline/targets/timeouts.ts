// Determines the timeouts of one call from the operator's config for its class, and from the
// client's headers.
import type { CallTimes } from "../../config/gateway-config.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate } from "../exchange/mounted.ts";

/** The timeouts that apply to a call. `isClientLimit`: whether the total comes from the client. */
export interface EffectiveTimeouts extends CallTimes {
  readonly isClientLimit?: boolean;
}

/**
 * Returns the operator's timeouts for the call's class. The total applies to all calls of a request
 * together. The client's headers can only lower them.
 */
export function timeoutsFor(call: HostCall): EffectiveTimeouts {
  const { timeouts } = call.candidate.mounted.provider;
  const times = timeouts.classes.get(timeoutClassOf(call)) ?? timeouts;
  return applyClientLimits(
    subtractElapsed(times, call.startedAt - call.requestFirstCallAt),
    call.exchange,
  );
}

/** Returns the operator's timeouts for the class of a candidate whose response is streamed. */
export function streamTimeoutsFor({ info, mounted: { provider } }: HostCandidate): CallTimes {
  const { timeouts } = provider;
  return timeouts.classes.get(timeoutClassOf({ info, stream: true })) ?? timeouts;
}

/**
 * Returns the time in milliseconds that is left for a further call. `began`: when the first call
 * started.
 */
export function remainingMs(
  x: HostExchange,
  { info, mounted: { provider } }: HostCandidate,
  began: number,
): number {
  const { timeouts } = provider;
  const times = timeouts.classes.get(timeoutClassOf({ info, stream: x.stream })) ?? timeouts;
  return applyClientLimits(subtractElapsed(times, performance.now() - began), x).totalMs;
}

const subtractElapsed = (times: CallTimes, passed: number): CallTimes =>
  passed > 0 ? { ...times, totalMs: Math.max(0, times.totalMs - passed) } : times;

/** Adds a wait for a provider. Two overlapping calls count as one wait. */
export function addProviderWait({ state }: HostExchange, from: number, until: number): void {
  state.connection.externalWaitMs += Math.max(
    0,
    until - Math.max(from, state.connection.externalWaitEnd),
  );
  state.connection.externalWaitEnd = until;
}

const CHAT = "chat";
/** Classes of chat calls. */
const CHAT_CLASSES = { quick: "quick", reasoning: "reasoning" } as const;

/**
 * Returns the class of a call. A model that may reason is silent at first, and a non-streaming
 * response arrives only when it is complete.
 */
export const timeoutClassOf = ({ info, stream }: { info: ModelInfo; stream: boolean }): string => {
  if (info.operation !== CHAT) return info.operation;
  return stream && info.can?.reasoning === false ? CHAT_CLASSES.quick : CHAT_CLASSES.reasoning;
};

/** Returns every class that `timeoutClassOf` returns for models of these operations. */
export const classesOf = (kinds: Iterable<string>): readonly string[] => [
  ...Object.values(CHAT_CLASSES),
  ...[...kinds].filter((kind) => kind !== CHAT),
];

/**
 * Applies the client's timeouts. SDKs send their timeouts: for the whole response, or between two
 * reads of the socket. The client would not receive a later response. The read timeout applies only
 * to non-streaming responses, because streams contain pings. A request in the background continues
 * without the client.
 */
function applyClientLimits(times: CallTimes, x: HostExchange): EffectiveTimeouts {
  if (x.backgroundRequest) return times;
  const { req, startedAt } = x.state.connection;
  const clientTotalMs = parseSecondsToMs(req.headers["x-stainless-timeout"]);
  const clientReadMs = parseSecondsToMs(req.headers["x-stainless-read-timeout"]);
  if (clientTotalMs === undefined && clientReadMs === undefined) return times;
  const elapsedMs = performance.now() - startedAt;
  const most =
    Math.min(clientTotalMs ?? Infinity, x.stream ? Infinity : (clientReadMs ?? Infinity)) -
    elapsedMs;
  return most < times.totalMs ? { ...times, totalMs: most, isClientLimit: true } : times;
}

function parseSecondsToMs(seconds: string | string[] | undefined): number | undefined {
  const ms = seconds === undefined ? NaN : Number(seconds) * 1000;
  return ms > 0 ? ms : undefined;
}
