// Runs event hooks, which may change a response's events, and watch hooks, which only read them, in
// the order of gateway.yaml.
import type { Fault } from "../../model/error.ts";
import type { ModelEvent, FinishReason } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";
import { requireSyncResult, invalidResult, type HookFailurePolicy } from "../hooks/hook-guard.ts";
import { checkEvent } from "../hooks/hook-results.ts";
import type { EventFilter } from "../hooks/hook-runner.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import type { CallTally } from "../metering/call-tally.ts";
import type { ClientResponse } from "./client-response.ts";

/** The part of a response that event and watch hooks use. */
export type FilterSink = Pick<TranscoderSink, "tally" | "isOver" | "stopWith" | "onError">;

/** Receives events. */
export type EventHandler = (event: ModelEvent) => void;

/**
 * Returns a handler that passes events through the hooks to `last`. Errors of hooks and errors of
 * `last` are kept separate, so that neither is handled as the other.
 */
export function createFilterChain(
  call: HostCall,
  sink: TranscoderSink,
  last: EventHandler,
): EventHandler {
  const { eventFilters } = call.exchange.state.frontend.hooks;
  if (eventFilters.length === 0) return last;
  return eventFilters.reduceRight<EventHandler>(
    (next, filter) => {
      if (!filter.hook.appliesTo(call.exchange.model, call.provider)) return next;
      const run = new FilterRun(call, sink, filter, next);
      if (filter.type === "event") return (event) => run.handle(event);
      return (event) => {
        run.handle(event);
        if (!sink.isOver) next(event);
      };
    },
    (event) => {
      try {
        if (!sink.isOver) last(event);
      } catch (problem) {
        sink.onError(attributeFault(problem, "answer", call.provider));
      }
    },
  );
}

/**
 * Throws if a hook that the response must pass is in quarantine. A response that cannot be
 * delivered would be paid for without use.
 */
export function assertFiltersAvailable({ provider, exchange }: HostCall): void {
  for (const { guard, hook } of exchange.state.frontend.hooks.eventFilters)
    if (!guard.skips && hook.appliesTo(exchange.model, provider)) guard.assertNotBlocked();
}

/**
 * Returns the event hook with the longest timeout, because event hooks may delay the end of a
 * response.
 */
export function longestHoldingFilter(call: HostCall): HookFailurePolicy | undefined {
  let longest: HookFailurePolicy | undefined;
  for (const { type, guard, hook } of call.exchange.state.frontend.hooks.eventFilters)
    if (type === "event" && hook.appliesTo(call.exchange.model, call.provider))
      if (guard.policy.timeoutMs > (longest?.timeoutMs ?? 0)) longest = guard.policy;
  return longest;
}

/** The watch hooks of one response. */
export interface EventWatchers {
  /**
   * Whether at least one of the hooks must see the whole response. If a hook cannot see the whole
   * response, the response is not forwarded.
   */
  readonly isRequired: boolean;
  observe(event: ModelEvent): void;
}

/**
 * Returns the watch hooks, for a response whose bytes are forwarded unchanged. Returns undefined if
 * no filter applies.
 */
export function createEventWatchers(call: HostCall, sink: FilterSink): EventWatchers | undefined {
  const { eventFilters } = call.exchange.state.frontend.hooks;
  const filters = eventFilters.filter(
    ({ type, hook }) => type === "watch" && hook.appliesTo(call.exchange.model, call.provider),
  );
  if (filters.length === 0) return undefined;
  const runs = filters.map((filter) => new FilterRun(call, sink, filter, () => {}));
  return {
    isRequired: filters.some(({ guard }) => !guard.skips),
    observe(event) {
      if (event.type === "delta" && !sink.isOver)
        sink.tally.receivedTextBytes += Buffer.byteLength(event.text);
      for (const run of runs) if (!sink.isOver) run.handle(event);
    },
  };
}

/**
 * One hook and the response that it handles. A hook succeeds if it processes a response to its end.
 * A hook that failed receives no more events. If its failure is not skipped, the response ends with
 * that failure.
 */
class FilterRun {
  readonly #call: HostCall;
  readonly #sink: FilterSink;
  readonly #filter: EventFilter;
  /** Undefined after a failure. */
  #handler: ((event: ModelEvent) => unknown) | undefined;

  /** Throws if the hook fails and its failure is not skipped. */
  constructor(call: HostCall, sink: FilterSink, filter: EventFilter, next: EventHandler) {
    this.#call = call;
    this.#sink = sink;
    this.#filter = filter;
    const { guard } = filter;
    const stop = (fault: Fault) => this.#stop(fault);
    try {
      guard.assertAvailable();
      const handler = requireSyncResult(
        filter.type === "watch"
          ? filter.hook.run(call, stop)
          : filter.hook.run(call, (event) => this.#emit(event, next), stop),
      );
      if (typeof handler !== "function")
        throw invalidResult(`${filter.type} returned no event handler`);
      this.#handler = handler;
    } catch (problem) {
      const error = guard.fail(call.exchange, problem);
      if (error !== undefined) throw error;
    }
  }

  /** Passes an event to the hook. */
  handle(event: ModelEvent): void {
    const handler = this.#handler;
    if (!handler) return;
    try {
      requireSyncResult(handler(event));
      if (event.type === "finish") this.#filter.guard.succeed();
    } catch (problem) {
      this.#handler = undefined;
      this.#fail(problem);
    }
  }

  /** Passes on an event that the hook emitted. */
  #emit(event: ModelEvent, next: EventHandler): void {
    try {
      checkEvent(event);
    } catch (problem) {
      return this.#fail(problem);
    }
    return next(event);
  }

  #fail(problem: unknown): void {
    const error = this.#filter.guard.fail(this.#call.exchange, problem);
    if (error !== undefined) this.#sink.onError(error);
  }

  /** Stops the response for the hook. Has no effect after the finish event. */
  #stop(fault: Fault): void {
    if (this.#sink.tally.hasFinished) return;
    if (!this.#sink.isOver) this.#filter.guard.record(this.#call.exchange, "refused");
    this.#sink.stopWith(fault);
  }
}

// The interfaces on both sides of a transcoder.

/** Receives what a transcoder reports about the response. */
export interface TranscoderSink {
  readonly response: ClientResponse;
  readonly tally: CallTally;
  /**
   * Whether the response has ended, with or without an error. Data that arrives later is dropped.
   */
  readonly isOver: boolean;
  onContent(): void;
  /**
   * Called before the final event is written. All data that is written from then on waits for the
   * bill.
   */
  onFinishing(reason: FinishReason): void;
  /** Called when the final event has been written. */
  onFinished(): void;
  /** Ends the response with a fault. Called by an event hook or a watch hook. */
  stopWith(fault: Fault): void;
  onError(problem: unknown): void;
  /**
   * Called when the response ended before the provider's did. The provider's response is then
   * canceled.
   */
  onStoppedEarly(): void;
}

export interface Transcoder extends Decoder {
  /** Writes an error in the client's protocol, inside a stream that has begun. */
  writeFault(fault: Fault): void;
  readonly isBetweenEvents: boolean;
}
