// What outlives a generation: one of each per process. A generation borrows from here and owns the rest.
import { join } from "node:path";
import { openLists, type Lists } from "../catalogue/lists.ts";
import type { GatewayConfig } from "../config/types.ts";
import type { Log } from "../lib/log.ts";
import type { Mask } from "../lib/mask.ts";
import { Shared, type Scope } from "../lib/scope.ts";
import { fail } from "../model/error.ts";
import { createUsual, type Usual } from "../money/usual.ts";
import type { Store } from "../plugin/store.ts";
import type { Pictures } from "../walk/pictures.ts";
import { Rests } from "../walk/rests.ts";
import { Watchdog } from "../walk/watchdog.ts";
import { createContext } from "./context.ts";
import { refuseSecond } from "./control.ts";
import { downloads } from "./download.ts";
import { openFiles, type Files } from "./files.ts";
import { createKeys, type Keys } from "./keys.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { Pools } from "./pools.ts";
import { Retiring } from "./retiring.ts";
import { makeStateFolder } from "./state-folder.ts";
import type { Twins } from "./twins.ts";

const SWEEP_MS = 60_000;
const LEASE_MS = 60_000;

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
  readonly retiring: Retiring;
  readonly usual: Usual;
  readonly watchdog: Watchdog;
  readonly pictures: Pictures;
  readonly files: Files;
  readonly twins: Twins;
  readonly stateDir: string;
}

/** What another process owns, as it is lent to this one. */
export type Lent = Pick<House, "store" | "lists">;

/** Everything that is there once per process; `scope` ends it in reverse order. */
export async function openHouse(
  config: GatewayConfig,
  of: { log: Log; mask: Mask; scope: Scope; publicUrl: () => string; twins: Twins; lent?: Lent },
): Promise<House> {
  const { log, mask, scope, lent } = of;
  if (!lent) await refuseSecond(config.stateDir);
  await makeStateFolder(config.stateDir);
  const house = {
    log,
    mask,
    stateDir: config.stateDir,
    shared: new Shared(),
    twins: of.twins,
    rests: new Rests(),
    retiring: new Retiring(log),
    usual: createUsual(),
    watchdog: scope.own(new Watchdog()),
    pools: scope.own(new Pools()),
    lists: lent?.lists ?? (await openLists(join(config.stateDir, "catalogue"))),
    files: await openFiles(join(config.stateDir, "files"), config.files),
  } as { -readonly [K in keyof House]: House[K] };
  scope.defer(() => house.lists.saved());
  scope.every(
    SWEEP_MS,
    () => house.files.sweep(),
    (error) => log.error({ err: error }, "old files could not be removed"),
  );
  const abroad = scope.own(downloads());
  house.pictures = {
    keep: async (bytes, mime) => {
      const { path } = await house.files.keep(bytes, mime ?? "image/png");
      return `${of.publicUrl().replace(/\/+$/, "")}${path}`;
    },
    get: (url, signal, own) => abroad.get(url, signal, { own }),
  };
  house.store = lent?.store ?? (await openStore(config, house, scope));
  house.ledger = createLedger(house.store, {
    tell: (trouble) =>
      trouble === undefined
        ? log.info({}, "the ledger takes rows again")
        : log.error({ trouble }, "the ledger takes no rows; new calls are refused"),
  });
  scope.defer(() => house.ledger.close());
  house.keys = createKeys(house.store);
  return house;
}

async function openStore(config: GatewayConfig, house: House, scope: Scope): Promise<Store> {
  const ctx = createContext({
    id: "store",
    scope,
    house,
    catalogue: () => fail("internal", "A store has no catalogue."),
  });
  const store = (await config.store.definition.setup(config.store.options, ctx)) as Store;
  const { presumed } = await store.open({
    instance: crypto.randomUUID(),
    leaseMs: LEASE_MS,
  });
  if (presumed > 0)
    house.log.warn({ presumed }, "calls that a crash left open were settled as estimated");
  return store;
}
