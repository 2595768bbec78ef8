// Runs event hooks, which may change a response's events, and watch hooks, which only read them, in
// the order of gateway.yaml.
import type { Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../exchange/call.ts";
import {
  requireSyncResult,
  assertFilterAvailable,
  recordHookFailure,
  assertNotQuarantined,
  toHookFault,
  invalidResult,
  recordHookSuccess,
  type HookFailurePolicy,
} from "../hooks/hook-guard.ts";
import { recordHookActivity } from "../hooks/hook-activity.ts";
import { checkEvent } from "../hooks/hook-result-checks.ts";
import type { CompiledHook } from "../hooks/hook-chain.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { TranscoderSink } from "./transcoder.ts";

/** Receives events. */
export type EventHandler = (event: ModelEvent) => void;

/**
 * Returns a handler that passes events through the hooks to `last`. Errors of hooks and errors of
 * `last` are kept apart, so neither propagates through the other.
 */
export function createFilterChain(
  call: HostCall,
  sink: TranscoderSink,
  last: EventHandler,
): EventHandler {
  const { eventFilters } = call.exchange.state.frontend.hookChain;
  if (eventFilters.length === 0) return last;
  return eventFilters.reduceRight<EventHandler>(
    (next, { event, watch }) => {
      const hook = event ?? watch;
      if (!hook.appliesTo(call.exchange.model, call.provider)) return next;
      const context = createFilterContext(call, sink, hook, event ? "event" : "watch");
      if (event)
        return isolateFailures(
          context,
          createHandler(context, () =>
            event.run(call, createCheckedNext(context, next), createStop(context)),
          ),
        );
      const observe = isolateFailures(
        context,
        createHandler(context, () => watch.run(call, createStop(context))),
      );
      return (e) => {
        observe(e);
        if (!sink.isOver) next(e);
      };
    },
    (e) => {
      try {
        if (!sink.isOver) last(e);
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
  for (const { event, watch } of exchange.state.frontend.hookChain.eventFilters) {
    const { failurePolicy, appliesTo } = event ?? watch;
    if (failurePolicy && appliesTo(exchange.model, provider))
      assertFilterAvailable(failurePolicy, event ? "event" : "watch");
  }
}

/**
 * Returns the event hook with the longest timeout, because event hooks may hold a response back.
 */
export function longestHoldingFilter(call: HostCall): HookFailurePolicy | undefined {
  let longest: HookFailurePolicy | undefined;
  for (const { appliesTo, failurePolicy } of call.exchange.state.frontend.hookChain.event)
    if (failurePolicy && appliesTo(call.exchange.model, call.provider))
      if (failurePolicy.timeoutMs > (longest?.timeoutMs ?? 0)) longest = failurePolicy;
  return longest;
}

/**
 * Returns the watch hooks, for a response whose bytes are forwarded unchanged. Returns undefined if
 * none applies.
 */
export function createEventWatchers(
  call: HostCall,
  sink: TranscoderSink,
): EventWatchers | undefined {
  const { watch } = call.exchange.state.frontend.hookChain;
  if (watch.length === 0) return undefined;
  const hooks = watch.filter((hook) => hook.appliesTo(call.exchange.model, call.provider));
  if (hooks.length === 0) return undefined;
  const stages = hooks.map((hook) => {
    const as = createFilterContext(call, sink, hook, "watch");
    return isolateFailures(
      as,
      createHandler(as, () => hook.run(call, createStop(as))),
    );
  });
  return {
    isRequired: hooks.some(({ failurePolicy }) => failurePolicy?.onError !== "continue"),
    observe(event) {
      if (event.type === "delta" && !sink.isOver)
        sink.tally.receivedTextBytes += Buffer.byteLength(event.text);
      for (const see of stages) if (!sink.isOver) see(event);
    },
  };
}

/** The watch hooks of one response. */
export interface EventWatchers {
  /**
   * Whether at least one of the hooks must see the whole response. If it cannot, the response is
   * not forwarded.
   */
  readonly isRequired: boolean;
  observe(event: ModelEvent): void;
}

/** One hook and the response that it handles. */
interface FilterContext {
  readonly call: HostCall;
  readonly sink: TranscoderSink;
  readonly id: string;
  readonly hook: "event" | "watch";
  readonly policy: Pick<HookFailurePolicy, "id" | "log" | "breakers">;
}

const NO_BREAKERS = {};

const createFilterContext = (
  call: HostCall,
  sink: TranscoderSink,
  { id, failurePolicy }: Pick<CompiledHook<"event">, "id" | "failurePolicy">,
  hook: FilterContext["hook"],
): FilterContext => {
  // The success or failure of a watch hook under `continue` is recorded in its own guard.
  const passes = hook === "watch" && failurePolicy?.onError === "continue";
  const conducts = passes ? NO_BREAKERS : (failurePolicy?.breakers ?? NO_BREAKERS);
  const log = failurePolicy?.log ?? call.exchange.state.gen.log;
  return { call, sink, id, hook, policy: { id, log, breakers: conducts } };
};

/** Wraps `next` for a hook. An invalid event ends the response with an error in the hook's name. */
const createCheckedNext =
  (as: FilterContext, next: EventHandler): EventHandler =>
  (event) => {
    try {
      checkEvent(event);
    } catch (problem) {
      recordFilterFailure(as, problem);
      return as.sink.onError(toHookFault(as.policy, as.hook, problem));
    }
    return next(event);
  };

/**
 * Returns the function with which a hook stops a response. After the finish event it does nothing.
 */
const createStop =
  ({ call, sink, id, hook }: FilterContext) =>
  (fault: Fault) => {
    if (sink.tally.hasFinished) return;
    if (!sink.isOver) recordHookActivity(call.exchange, id, hook, "refused");
    sink.stopWith(fault);
  };

const recordFilterFailure = (
  { call, id, hook, policy: { breakers } }: FilterContext,
  problem: unknown,
): void => recordHookFailure({ id, onError: "reject", breakers }, hook, call.exchange, problem);

function createHandler(as: FilterContext, make: () => EventHandler): EventHandler {
  try {
    assertNotQuarantined(as.policy, as.hook);
    const stage = requireSyncResult(make());
    if (typeof stage !== "function") throw invalidResult(`${as.hook} returned no event handler`);
    return stage;
  } catch (problem) {
    recordFilterFailure(as, problem);
    throw toHookFault(as.policy, as.hook, problem);
  }
}

/**
 * Wraps a hook. Seeing a response to its end counts as success. A hook that failed receives no more
 * events.
 */
function isolateFailures(as: FilterContext, stage: (event: ModelEvent) => unknown): EventHandler {
  let hasFailed = false;
  return (event) => {
    if (hasFailed) return;
    try {
      requireSyncResult(stage(event));
      if (event.type === "finish") recordHookSuccess(as.policy, as.hook);
    } catch (problem) {
      hasFailed = true;
      recordFilterFailure(as, problem);
      as.sink.onError(toHookFault(as.policy, as.hook, problem));
    }
  };
}
