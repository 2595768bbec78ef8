// What an answer's events pass on their way: stages that may change them, and those that only look, in gateway.yaml's order.
import type { Fault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { HostCall } from "../call.ts";
import {
  atOnce,
  barring,
  blamed,
  entering,
  named,
  unusable,
  went,
  type Tolerance,
} from "../hook-failures.ts";
import { note } from "../hook-notes.ts";
import { checkEvent } from "../hook-results.ts";
import type { Hook } from "../hooks.ts";
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
      const as = looking(call, sink, hook, event ? "event" : "watch");
      if (event)
        return broken(
          as,
          made(as, () => event.run(call, passing(as, next), stopping(as))),
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

/** Throws where a stage that its answer would have to pass is not asked now: an answer that cannot leave is not paid for. */
export function mayPass({ provider, exchange }: HostCall): void {
  for (const { event, watch } of exchange["~"].frontend.chain.stages) {
    const { tolerance, applies } = event ?? watch;
    if (tolerance && applies(exchange.model, provider))
      barring(tolerance, event ? "event" : "watch");
  }
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
    const as = looking(call, sink, hook, "watch");
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
  readonly of: Pick<Tolerance, "id" | "log" | "conducts">;
}

const NONE = {};

const looking = (
  call: HostCall,
  sink: LaneSink,
  { id, tolerance }: Pick<Hook<"event">, "id" | "tolerance">,
  hook: As["hook"],
): As => {
  // A watcher that may be passed over is seen to where that is done.
  const passes = hook === "watch" && tolerance?.onError === "pass";
  const conducts = passes ? NONE : (tolerance?.conducts ?? NONE);
  const log = tolerance?.log ?? call.exchange["~"].gen.log;
  return { call, sink, id, hook, of: { id, log, conducts } };
};

/** What a hook passes on, as far as it can be used: what cannot ends the answer by that hook's name. */
const passing =
  (as: As, next: EventStage): EventStage =>
  (event) => {
    try {
      checkEvent(event);
    } catch (problem) {
      failed(as, problem);
      return as.sink.broke(named(as.of, as.hook, problem));
    }
    return next(event);
  };

/** After its finish an answer is not stopped any more. */
const stopping =
  ({ call, sink, id, hook }: As) =>
  (fault: Fault) => {
    if (sink.tally.ended) return;
    if (!sink.over) note(call.exchange, id, hook, "refused");
    sink.stop(fault);
  };

const failed = ({ call, id, hook, of: { conducts } }: As, problem: unknown): void =>
  blamed({ id, onError: "refuse", conducts }, hook, call.exchange, problem);

function made(as: As, make: () => EventStage): EventStage {
  try {
    entering(as.of, as.hook);
    const stage = atOnce(make());
    if (typeof stage !== "function") throw unusable(`${as.hook} gave nothing to show events to`);
    return stage;
  } catch (problem) {
    failed(as, problem);
    throw named(as.of, as.hook, problem);
  }
}

/** One that has seen an answer to its end has done its work; one that has failed sees no more of it. */
function broken(as: As, stage: (event: ModelEvent) => unknown): EventStage {
  let out = false;
  return (event) => {
    if (out) return;
    try {
      atOnce(stage(event));
      if (event.type === "finish") went(as.of, as.hook);
    } catch (problem) {
      out = true;
      failed(as, problem);
      as.sink.broke(named(as.of, as.hook, problem));
    }
  };
}
