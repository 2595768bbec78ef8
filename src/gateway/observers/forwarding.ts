// What a worker has to tell observers: they are in the primary, so records go there, many at a time.
import type { RequestRecord } from "../../plugin/observer.ts";
import type { Link } from "../workers/link.ts";
import { BATCH, EVERY_MS, type Observing } from "./audience.ts";

export interface Forwarding extends Observing {
  /** What is here goes now: this process ends. */
  flush(): void;
}

export function forwarding(link: () => Pick<Link, "tell">): Forwarding {
  let records: RequestRecord[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (records.length === 0) return;
    link().tell("seen", records);
    records = [];
  };
  return {
    seen(record) {
      records.push(record);
      if (records.length >= BATCH) flush();
      else timer ??= setTimeout(flush, EVERY_MS).unref();
    },
    told: (notice) => link().tell("told", notice),
    gone() {},
    dropped: () => ({}),
    mount() {},
    end: async () => {},
    flush,
  };
}
