// What a worker has to tell observers: they are in the primary, so records go there, many at a time.
import type { TurnedAway } from "../../plugin/observer.ts";
import type { HeardRequest } from "../../walk/generation.ts";
import type { Link } from "../workers/link.ts";
import { EVERY_MS, type Observing } from "./audience.ts";
import { BATCH } from "./subscriber.ts";

export interface Forwarding extends Observing {
  /** What is here goes now: this process ends. */
  flush(): void;
}

export function forwarding(link: () => Pick<Link, "tell">): Forwarding {
  let records: HeardRequest[] = [];
  let refusals: TurnedAway[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (records.length > 0) link().tell("seen", records);
    if (refusals.length > 0) link().tell("turnedAway", refusals);
    records = [];
    refusals = [];
  };
  const soon = (waiting: number) => {
    if (waiting >= BATCH) flush();
    else timer ??= setTimeout(flush, EVERY_MS).unref();
  };
  return {
    seen: (record) => soon(records.push(record)),
    turnedAway: (refusal) => soon(refusals.push(refusal)),
    told: (notice) => link().tell("told", notice),
    // Verdicts are heard in the primary.
    heard: async () => true,
    // Batches of all processes become durable in the primary.
    landed() {},
    gone() {},
    dropped: () => ({}),
    mount() {},
    end: async () => {},
    flush,
  };
}
