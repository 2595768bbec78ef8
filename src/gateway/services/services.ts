// What outlives a generation: one of each per process. A generation borrows from here and owns the rest.
import { join } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import { openLists, type Lists } from "../../catalogue/lists.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { Holders, type HoldersOf } from "../admin/holders.ts";
import type { Log } from "../../lib/log.ts";
import type { ProxyRoute } from "../../lib/proxy.ts";
import { Repeats } from "../../lib/repeats.ts";
import type { Mask } from "../../lib/mask.ts";
import type { Scope, Shared } from "../../lib/scope.ts";
import { createUsual, type Usual } from "../../money/usual.ts";
import type { InstanceFacts } from "../../plugin/instance.ts";
import type { Readings } from "../../plugin/readings.ts";
import type { Store } from "../../plugin/store.ts";
import type { PictureFiles } from "../../walk/answer/picture-files.ts";
import { RestingTargets } from "../../walk/candidates/resting.ts";
import { Gate } from "../../walk/bounds/gate.ts";
import { Room } from "../../walk/bounds/room.ts";
import { Conducts } from "../../walk/conduct.ts";
import { Strain } from "../../walk/bounds/strain.ts";
import { Turnstile } from "../../walk/bounds/turnstile.ts";
import { Watchdog } from "../../walk/bounds/watchdog.ts";
import type { Claims } from "../../walk/claims.ts";
import { ClaimTable } from "./claims.ts";
import { KnownAccounts } from "./accounts.ts";
import { createDesk, desked } from "./ledger-readings.ts";
import { downloads } from "./download.ts";
import { openFiles, type Files } from "./files.ts";
import { commonKey } from "./signing-key.ts";
import { createKeys, type Keys } from "./keys.ts";
import { Health } from "./health.ts";
import type { LedgerQueue } from "./ledger.ts";
import { createLedger } from "./ledger-queue.ts";
import { Audience, type Observing } from "../observers/audience.ts";
import { Crossings } from "../observers/crossings.ts";
import { hearingCommits } from "../observers/commits.ts";
import { Durations } from "../readings/durations.ts";
import { Refusals } from "../readings/refusals.ts";
import { UnderWay } from "../requests/under-way.ts";
import { remember, type Remembered } from "../requests/remembered.ts";
import type { OwnPort } from "../http/own-port.ts";
import { Pools } from "./pools.ts";
import { Retiring } from "./retiring.ts";
import { OtherNodes } from "./nodes.ts";
import { answeringLists } from "./others-lists.ts";
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
  /** Whether the ledger accepts rows, as the process that owns the store says it. */
  readonly health: Health;
  /** The store's readings, as clients get them. */
  readonly reports: Pick<Store, "entries" | "totals" | "counted">;
  readonly keys: Keys;
  /** The store's; those of gateway.yaml are each generation's. */
  readonly accounts: KnownAccounts;
  /** Of the admin listener, in the process that has it. */
  readonly holders?: Holders;
  /** What providers said of themselves; read live by every generation. */
  readonly lists: Lists;
  /** Where observers hear of what happens. */
  readonly observing: Observing;
  /** Requests that are over; in the process that has the observers. */
  readonly remembered?: Remembered;
  readonly rests: RestingTargets;
  /** What plugins are not asked for a while. */
  readonly conducts: Conducts;
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
  /** What gateways on one store know one another by. */
  readonly between: Uint8Array;
  /** What no process of this gateway knows, another one on its store may. */
  readonly elsewhere: Pick<OtherNodes, "ask" | "all">;
  /** Requests that were turned away before a frontend had them. */
  readonly refusals: Refusals;
  /** Requests that are not over, of this process. */
  readonly underWay: UnderWay;
  /** Of limits, as the store says them; in the process that owns it. */
  readonly crossings?: Crossings;
  /** How long the store took over each batch. Of the process that owns it. */
  readonly commits: Durations;
  /** Of all processes. */
  readonly readings: () => Promise<Readings>;
  /** Where this process serves clients, for calls from this machine. Throws before it serves. */
  readonly own: () => OwnPort;
  /** How a store of several gateways knows this one; in the process that opens it. */
  readonly instance?: string;
  readonly stateDir: string;
  /** What calls that leave go through; undefined: they go straight. */
  readonly proxy?: ProxyRoute | undefined;
  /** Of the process; a plugin reads of it what it declares. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What is there before the rest, for the store to stand on. */
export type ContextServices = Pick<
  Services,
  "log" | "shared" | "peers" | "readings" | "own" | "instance" | "stateDir" | "proxy" | "env"
>;

/** What is remembered is told like any observer, over all generations. */
function audience(log: Log, remembered: Remembered | undefined, scope: Scope): Audience {
  const made = new Audience(log, remembered ? [remembered.ear] : []);
  scope.defer(() => made.close());
  return made;
}

const conductsTelling = (observing: Observing): Conducts =>
  new Conducts({
    quarantined: (of, failures) =>
      observing.told({ type: "quarantined", at: wallClock(), ...of, failures }),
    released: (of) => observing.told({ type: "released", at: wallClock(), ...of }),
  });

const holdersOf = (admin: HoldersOf["admin"], record: HoldersOf["record"]): Holders =>
  new Holders({ admin, record, now: wallClock });

/** What services stand on. */
interface ServicesOf {
  contextServices: ContextServices;
  mask: Mask;
  scope: Scope;
  publicUrl: () => string;
  /** Of the current config; absent: this process has no admin listener. */
  admin?: HoldersOf["admin"];
  /** May still be on its way. */
  store: Store | Promise<Store>;
  /** Whether the store is on its way to another process. */
  isMoving?: () => boolean;
  /** What this gateway says of itself to a store that it shares with others. */
  about?: (() => InstanceFacts | undefined) | undefined;
  /** As another process tells of them; without them our own. */
  accounts?: KnownAccounts;
  /** Another process's; without them our own, in the state folder. */
  lists?: Lists;
  /** The process that knows of Idempotency-Keys; without it this one does. */
  claims?: Claims;
  /** Where the observers are, when not in this process. */
  observing?: Observing;
  /** Of a process that borrows its store: what the owner says, and how the owner learns that no row gets through. */
  borrowed?: { readonly health: Health; troubled(why: string): void };
}

/** The process that owns the store tells of it; a worker only carries what it was answered. */
function hearStore(services: { -readonly [K in keyof Services]: Services[K] }, worker: boolean) {
  const { store, observing, commits, log } = services;
  if (worker) services.writes = store;
  else {
    services.crossings = new Crossings(store, observing, log);
    services.writes = hearingCommits(store, observing, commits, services.crossings);
  }
}

/** Gateways on one store sign with one key, so that each knows an address that another has given out, and finds the file there. */
async function keepFiles(
  { stateDir, files: limits }: Pick<GatewayConfig, "stateDir" | "files">,
  services: { -readonly [K in keyof Services]: Services[K] },
  scope: Scope,
): Promise<void> {
  const dir = join(stateDir, "files");
  const { store, instance } = services;
  services.between = await commonKey(dir, store);
  services.elsewhere = new OtherNodes(store.lease ? store : {}, instance ?? "", services.between);
  const files = await openFiles(dir, {
    ...limits,
    elsewhere: async (name, query) => {
      const found = await services.peers.ask(FILES, { name, query });
      return typeof found === "string" ? Buffer.from(found, "base64") : undefined;
    },
  });
  services.files = files;
  services.peers.answers(scope, FILES, async ({ name, query }: FileAsked) =>
    files.serve(name, new URLSearchParams(query), true).then(
      ({ body }) => body.toString("base64"),
      () => undefined,
    ),
  );
  scope.every(
    SWEEP_MS,
    () => files.sweep(),
    (error) => services.log.error({ err: error }, "old files could not be removed"),
  );
}

/** A question of its own among those of plugins. */
const FILES = "files";
interface FileAsked {
  readonly name: string;
  readonly query: string;
}

/** The log and observers are told once when the ledger fails and once when it is back. */
function announcing({ health, log, observing }: Pick<Services, "health" | "log" | "observing">) {
  let down = false;
  health.onChange((trouble) => {
    if (down === (trouble !== undefined)) return;
    down = trouble !== undefined;
    if (trouble) log.error({ trouble: trouble.why }, "ledger unavailable; new calls are refused");
    else log.info({}, "ledger recovered");
    observing.told({ type: "ledger", at: wallClock(), ok: !down });
  });
}

/** Everything that is there once per process; `scope` ends it in reverse order. */
export async function openServices(config: GatewayConfig, of: ServicesOf): Promise<Services> {
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
    holders: of.admin && holdersOf(of.admin, (digest) => services.store.key(digest)),
    rests: new RestingTargets({
      rests: (rest) => observing.told({ type: "rests", at: wallClock(), ...rest }),
      recovered: (what) => observing.told({ type: "recovered", at: wallClock(), ...what }),
    }),
    conducts: conductsTelling(observing),
    refusals: new Refusals(),
    underWay: new UnderWay(),
    commits: new Durations(),
    health: of.borrowed?.health ?? new Health(),
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
    accounts: of.accounts ?? new KnownAccounts(),
    pools: scope.own(new Pools(config.proxy)),
    lists: of.lists ?? (await openLists(join(config.stateDir, "catalogue"))),
  } as { -readonly [K in keyof Services]: Services[K] };
  scope.defer(() => services.lists.saved());
  const abroad = scope.own(downloads());
  services.pictures = {
    keep: async (bytes, mime, who) => {
      const { path } = await services.files.keep(bytes, mime ?? "image/png", undefined, who);
      return `${of.publicUrl().replace(/\/+$/, "")}${path}`;
    },
    get: (url, signal, own) => abroad.get(url, signal, { own }),
  };
  answeringLists(services, scope);
  services.store = await of.store;
  await keepFiles(config, services, scope);
  await services.accounts.read(services.store);
  hearStore(services, of.observing !== undefined);
  services.ledger = createLedger(services.writes, {
    about: of.about,
    isMoving: of.isMoving,
    tell(trouble) {
      if (!of.borrowed) services.health.set(trouble && { since: wallClock(), ...trouble });
      else if (trouble) of.borrowed.troubled(trouble.why);
    },
  });
  if (!of.borrowed) announcing(services);
  scope.defer(() => services.ledger.close());
  services.keys = createKeys(services.store, { away: () => services.ledger.isAway });
  services.reports = desked(services.store, createDesk(READ_MS));
  return services;
}
