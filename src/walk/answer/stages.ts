// What an answer's events pass on their way: stages that may change them, and those that only look, in gateway.yaml's order.
import type { Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../call.ts";
import { atOnce, blamed, type Tolerance } from "../hook-failures.ts";
import { note } from "../hook-notes.ts";
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
  return stages.reduceRight<EventStage>(
    (next, { event, watch }) => {
      const hook = event ?? watch;
      if (!hook.applies(call.exchange.model, call.provider)) return next;
      const as: As = { call, sink, id: hook.id, hook: event ? "event" : "watch" };
      if (event)
        return broken(
          as,
          made(as, () => event.run(call, next, stopping(as))),
        );
      const see = broken(
        as,
        made(as, () => watch.run(call, stopping(as))),
      );
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
  const stages = hooks.map((hook) => {
    const as: As = { call, sink, id: hook.id, hook: "watch" };
    return broken(
      as,
      made(as, () => hook.run(call, stopping(as))),
    );
  });
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

/** One hook at one answer. */
interface As {
  readonly call: HostCall;
  readonly sink: LaneSink;
  readonly id: string;
  readonly hook: "event" | "watch";
}

/** After its finish an answer is not stopped any more. */
const stopping =
  ({ call, sink, id, hook }: As) =>
  (fault: Fault) => {
    if (sink.tally.ended) return;
    if (!sink.over) note(call.exchange, id, hook, "refused");
    sink.stop(fault);
  };

const failed = ({ call, id, hook }: As, problem: unknown): void =>
  blamed({ id, onError: "refuse" }, hook, call.exchange, problem);

function made(as: As, make: () => EventStage): EventStage {
  try {
    return atOnce(make());
  } catch (problem) {
    failed(as, problem);
    throw problem;
  }
}

const broken =
  (as: As, stage: (event: ModelEvent) => unknown): EventStage =>
  (event) => {
    try {
      atOnce(stage(event));
    } catch (problem) {
      failed(as, problem);
      as.sink.broke(problem);
    }
  };
