// What outlives a generation: one of each per process. A generation borrows from here and owns the rest.
import { join } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import { openLists, type Lists } from "../../catalogue/lists.ts";
import type { GatewayConfig } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import { Repeats } from "../../lib/repeats.ts";
import type { Mask } from "../../lib/mask.ts";
import type { Scope, Shared } from "../../lib/scope.ts";
import { createUsual, type Usual } from "../../money/usual.ts";
import type { Readings } from "../../plugin/readings.ts";
import type { Store } from "../../plugin/store.ts";
import type { PictureFiles } from "../../walk/answer/picture-files.ts";
import { RestingTargets } from "../../walk/candidates/resting.ts";
import { Gate } from "../../walk/bounds/gate.ts";
import { Room } from "../../walk/bounds/room.ts";
import { Strain } from "../../walk/bounds/strain.ts";
import { Turnstile } from "../../walk/bounds/turnstile.ts";
import { Watchdog } from "../../walk/bounds/watchdog.ts";
import type { Claims } from "../../walk/claims.ts";
import { ClaimTable } from "./claims.ts";
import { createDesk, desked } from "./ledger-readings.ts";
import { downloads } from "./download.ts";
import { openFiles, type Files } from "./files.ts";
import { createKeys, type Keys } from "./keys.ts";
import { createLedger, type LedgerQueue } from "./ledger-queue.ts";
import { Audience, type Observing } from "../observers/audience.ts";
import { hearingCommits } from "../observers/commits.ts";
import { Durations } from "../readings/durations.ts";
import { Refusals } from "../readings/refusals.ts";
import { remember, type Remembered } from "../requests/remembered.ts";
import { Pools } from "./pools.ts";
import { Retiring } from "./retiring.ts";
import type { Peers } from "./peers.ts";

const SWEEP_MS = 60_000;
/** A report may take longer than a look-up; a client waits for it all the same. */
const READ_MS = 15_000;

export interface Services {
  readonly log: Log;
  readonly mask: Mask;
  readonly shared: Shared;
  readonly pools: Pools;
  readonly store: Store;
  /** The store's way in; observers hear of what a batch has made durable. */
  readonly writes: Pick<Store, "apply" | "lease">;
  readonly ledger: LedgerQueue;
  /** The store's readings, as clients get them. */
  readonly reports: Pick<Store, "entries" | "totals">;
  readonly keys: Keys;
  /** What providers said of themselves; read live by every generation. */
  readonly lists: Lists;
  /** Where observers hear of what happens. */
  readonly observing: Observing;
  /** Requests that are over; in the process that has the observers. */
  readonly remembered?: Remembered;
  readonly rests: RestingTargets;
  readonly retiring: Retiring;
  readonly repeats: Repeats;
  readonly usual: Usual;
  readonly watchdog: Watchdog;
  readonly room: Room;
  readonly gate: Gate;
  readonly turnstile: Turnstile;
  readonly claims: Claims;
  readonly pictures: PictureFiles;
  readonly files: Files;
  readonly peers: Peers;
  /** Requests that were turned away before a frontend had them. */
  readonly refusals: Refusals;
  /** How long the store took over each batch. Of the process that owns it. */
  readonly commits: Durations;
  /** Of all processes. */
  readonly readings: () => Promise<Readings>;
  readonly stateDir: string;
  /** Of the process; a plugin reads of it what it declares. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What is there before the rest, for the store to stand on. */
export type ContextServices = Pick<
  Services,
  "log" | "shared" | "peers" | "readings" | "stateDir" | "env"
>;

/** What is remembered is told like any observer, over all generations. */
function audience(log: Log, remembered: Remembered | undefined, scope: Scope): Audience {
  const made = new Audience(log, remembered ? [remembered.ear] : []);
  scope.defer(() => made.close());
  return made;
}

/** Everything that is there once per process; `scope` ends it in reverse order. */
export async function openServices(
  config: GatewayConfig,
  of: {
    contextServices: ContextServices;
    mask: Mask;
    scope: Scope;
    publicUrl: () => string;
    /** May still be on its way. */
    store: Store | Promise<Store>;
    /** Another process's; without them our own, in the state folder. */
    lists?: Lists;
    /** The process that knows of Idempotency-Keys; without it this one does. */
    claims?: Claims;
    /** Where the observers are, when not in this process. */
    observing?: Observing;
  },
): Promise<Services> {
  const { contextServices, mask, scope } = of;
  const { log } = contextServices;
  const remembered = of.observing
    ? undefined
    : await remember({ most: config.remember, stateDir: config.stateDir, log, scope });
  const observing = of.observing ?? audience(log, remembered, scope);
  const services = {
    ...contextServices,
    mask,
    observing,
    remembered,
    rests: new RestingTargets({
      rests: (rest) => observing.told({ type: "rests", at: wallClock(), ...rest }),
      recovered: (what) => observing.told({ type: "recovered", at: wallClock(), ...what }),
    }),
    refusals: new Refusals(),
    commits: new Durations(),
    retiring: new Retiring(log),
    repeats: scope.own(new Repeats()),
    usual: createUsual(),
    watchdog: scope.own(new Watchdog()),
    gate: new Gate(config.overload, scope.own(new Strain()), (load) =>
      log.warn({ ...load }, "requests were refused: there is more to do than can be done"),
    ),
    room: new Room(config.bounds.inFlightBytes),
    turnstile: new Turnstile(),
    claims: of.claims ?? new ClaimTable(),
    pools: scope.own(new Pools()),
    lists: of.lists ?? (await openLists(join(config.stateDir, "catalogue"))),
    files: await openFiles(join(config.stateDir, "files"), config.files),
  } as { -readonly [K in keyof Services]: Services[K] };
  scope.defer(() => services.lists.saved());
  scope.every(
    SWEEP_MS,
    () => services.files.sweep(),
    (error) => log.error({ err: error }, "old files could not be removed"),
  );
  const abroad = scope.own(downloads());
  services.pictures = {
    keep: async (bytes, mime, who) => {
      const { path } = await services.files.keep(bytes, mime ?? "image/png", undefined, who);
      return `${of.publicUrl().replace(/\/+$/, "")}${path}`;
    },
    get: (url, signal, own) => abroad.get(url, signal, { own }),
  };
  services.store = await of.store;
  // The process that owns the store tells of it; a worker only carries what it was answered.
  services.writes = of.observing
    ? services.store
    : hearingCommits(services.store, observing, services.commits);
  services.ledger = createLedger(services.writes, {
    tell(trouble) {
      const ok = trouble === undefined;
      if (ok) log.info({}, "the ledger takes rows again");
      else log.error({ trouble }, "the ledger takes no rows; new calls are refused");
      observing.told({ type: "ledger", at: wallClock(), ok });
    },
  });
  scope.defer(() => services.ledger.close());
  services.keys = createKeys(services.store);
  services.reports = desked(services.store, createDesk(READ_MS));
  return services;
}
