// What outlives a generation: one of each per process. A generation borrows from here and owns the rest.
import type { Lists } from "../catalogue/lists.ts";
import type { Log } from "../lib/log.ts";
import type { Mask } from "../lib/mask.ts";
import type { Shared } from "../lib/scope.ts";
import type { Store } from "../plugin/store.ts";
import type { Pictures } from "../walk/pictures.ts";
import type { Rests } from "../walk/rests.ts";
import type { Watchdog } from "../walk/watchdog.ts";
import type { Files } from "./files.ts";
import type { Keys } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import type { Pools } from "./pools.ts";

export interface House {
  readonly log: Log;
  readonly mask: Mask;
  readonly shared: Shared;
  readonly pools: Pools;
  readonly store: Store;
  readonly ledger: Ledger;
  readonly keys: Keys;
  /** What providers said of themselves; read live by every generation. */
  readonly lists: Lists;
  readonly rests: Rests;
  readonly watchdog: Watchdog;
  readonly pictures: Pictures;
  readonly files: Files;
  readonly stateDir: string;
}
