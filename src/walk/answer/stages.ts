// What an answer's events pass on their way: stages that may change them, and those that only look, in gateway.yaml's order.
import type { Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../call.ts";
import { atOnce, type Tolerance } from "../hook-failures.ts";
import { blame } from "../upstream/blame.ts";
import type { LaneSink } from "./lane-sink.ts";

/** Where events go. */
export type EventStage = (event: ModelEvent) => void;

/**
 * The stages before `last`. What a hook throws is its own, and what comes after the hooks is the answer's: neither throws
 * through the other.
 */
export function staged(call: HostCall, sink: LaneSink, last: EventStage): EventStage {
  const { stages } = call.exchange["~"].frontend.chain;
  if (stages.length === 0) return last;
  const stop = stopping(sink);
  return stages.reduceRight<EventStage>(
    (next, { event, watch }) => {
      const hook = event ?? watch;
      if (!hook.applies(call.exchange.model, call.provider)) return next;
      if (event) return broken(sink, atOnce(event.run(call, next, stop)));
      const see = broken(sink, atOnce(watch.run(call, stop)));
      return (e) => {
        see(e);
        if (!sink.over) next(e);
      };
    },
    (e) => {
      try {
        if (!sink.over) last(e);
      } catch (problem) {
        sink.broke(blame(problem, "answer", call.provider));
      }
    },
  );
}

/** Of the stages that may keep an answer back, the one that has the longest time for it. */
export function keeper(call: HostCall): Tolerance | undefined {
  let longest: Tolerance | undefined;
  for (const { applies, tolerance } of call.exchange["~"].frontend.chain.event)
    if (tolerance && applies(call.exchange.model, call.provider))
      if (tolerance.timeoutMs > (longest?.timeoutMs ?? 0)) longest = tolerance;
  return longest;
}

/** The watchers alone, for an answer whose bytes pass as they came; nothing where there is none. */
export function watching(call: HostCall, sink: LaneSink): Watching | undefined {
  const { watch } = call.exchange["~"].frontend.chain;
  if (watch.length === 0) return undefined;
  const hooks = watch.filter((hook) => hook.applies(call.exchange.model, call.provider));
  if (hooks.length === 0) return undefined;
  const stop = stopping(sink);
  const stages = hooks.map((hook) => broken(sink, atOnce(hook.run(call, stop))));
  return {
    must: hooks.some(({ tolerance }) => tolerance?.onError !== "pass"),
    show(event) {
      if (event.type === "delta" && !sink.over)
        sink.tally.heardBytes += Buffer.byteLength(event.text);
      for (const see of stages) if (!sink.over) see(event);
    },
  };
}

/** Those that look at one answer. */
export interface Watching {
  /** One of them has to see all of it, or none of it passes. */
  readonly must: boolean;
  show(event: ModelEvent): void;
}

/** After its finish an answer is not stopped any more. */
const stopping = (sink: LaneSink) => (fault: Fault) => {
  if (!sink.tally.ended) sink.stop(fault);
};

const broken =
  (sink: LaneSink, stage: (event: ModelEvent) => unknown): EventStage =>
  (event) => {
    try {
      atOnce(stage(event));
    } catch (problem) {
      sink.broke(problem);
    }
  };
