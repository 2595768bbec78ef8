// A running gateway: one set of services, one current generation, one open port. Reload builds a whole new generation and swaps
// one reference; nothing old is stopped before everything new is ready, so there is nothing to roll back.
import { wallClock } from "../lib/wall-clock.ts";
import type { Refresh } from "../catalogue/refresh.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { GatewayConfig, Located } from "../config/types.ts";
import type { Scope } from "../lib/scope.ts";
import type { StoreNews } from "../plugin/instance.ts";
import type { Readings } from "../plugin/readings.ts";
import { Changes } from "./changes.ts";
import { explainIn } from "./control/explanation.ts";
import { firstKey } from "./services/first-key.ts";
import { unkeepable } from "./services/retention.ts";
import { type GatewayOptions, orderOf, type StartOf } from "./options.ts";
import { openServices, type Services } from "./services/services.ts";
import { overBetween } from "./control/between.ts";
import type { Peers } from "./services/peers.ts";
import { factsOf, fleetOf } from "./services/fleet.ts";
import { ledgerAnswers } from "./services/store.ts";
import type { HeldStore } from "./services/held-store.ts";
import type { AllReadings } from "./readings/all.ts";
import { readingAll } from "./readings/primary.ts";
import { type Reloadable, reloaded, replaced } from "./reload/reloading.ts";
import { latest } from "./reload/latest.ts";
import { tellReload } from "./reload/news.ts";
import type { Listening } from "./http/listener.ts";
import { endMs, LameDuck } from "./lame-duck.ts";
import { linesOf, refreshing } from "./generation/live-lists.ts";
import { GenerationSlot, type LiveGeneration } from "./generation/slot.ts";
import { warn } from "./reload/config-log.ts";
import type { Explanation, Gateway, ReloadWhy, Status } from "./types.ts";
import type { WorkerPool } from "./workers/pool.ts";
import { together } from "./workers/status.ts";
import { statusOf } from "./status-of.ts";
import { Office } from "./office.ts";
import { removeSockets } from "./http/unix-socket.ts";
import type { Descriptors } from "./succession/descriptors.ts";
import { ownSockets } from "./succession/letting-go.ts";
import { Succession } from "./succession/succession.ts";

export class Running implements Gateway {
  readonly #of: GatewayOptions;
  readonly #scope: Scope;
  readonly #startedAt = wallClock();
  #services!: Services;
  #changes: Changes | undefined;
  #early = false;
  #refresh!: Refresh;
  #stage!: GenerationSlot;
  /** What is open to clients: this process's own port, or the workers'. */
  #door: ((Listening | WorkerPool) & { kill(): unknown }) | undefined;
  #workers: WorkerPool | undefined;
  #readings: AllReadings | undefined;
  #numbers = 0;
  #lastReload: Status["lastReload"];
  #stopping: Promise<void> | undefined;
  #succession!: Succession;
  /** Unix sockets whose names this gateway takes away at its end. */
  #sockets: readonly string[] = [];
  #office!: Office;
  readonly #duck = new LameDuck();
  readonly #broken = Promise.withResolvers<Error>();
  firstKey: string | undefined;

  /** `scope` ends with it. */
  constructor(of: GatewayOptions, scope: Scope) {
    this.#of = of;
    this.#scope = scope;
  }

  get url(): string {
    return this.urls[0] ?? "";
  }
  get urls(): readonly string[] {
    return this.#door?.urls ?? [];
  }
  get adminUrl(): string | undefined {
    return this.#office?.admin?.url;
  }
  get stateDir(): string {
    return this.#services.stateDir;
  }
  get busy(): number {
    return this.#door?.inflight() ?? 0;
  }
  get endMs(): number {
    return endMs(this.#stage.current.config, this.#workers !== undefined);
  }
  get broken(): Promise<Error> {
    return this.#broken.promise;
  }
  async start(of: StartOf): Promise<readonly Located[] | undefined> {
    const { loaded, config, size } = of;
    this.#services = await openServices(config, {
      ...of,
      mask: this.#of.mask,
      scope: this.#scope,
      admin: () => this.#stage.current.config.admin,
      publicUrl: () => this.#stage.current.config.publicUrl ?? this.url,
      isMoving: () => of.held.isMoving,
      about: () => factsOf(this.#of.version, this.url, this.#stage?.current),
    });
    this.#changes = new Changes(this.#services, () => [this.#workers, this.#of.predecessor]);
    if (this.#early) await this.#changes.accounts();
    this.#stage = new GenerationSlot(this.#services);
    this.#refresh = this.#scope.own(refreshing(this.#services));
    const here = { services: this.#services, stage: this.#stage, refresh: this.#refresh };
    this.#readings = readingAll(
      { ...here, version: this.#of.version },
      () => this.#workers?.sources() ?? [],
    );
    // Requests wait while this one takes over, and what providers say is known already.
    const serving = await this.#build(loaded, config, this.#of.predecessor === undefined);
    if ("problems" in serving) return serving.problems;
    warn(this.#of.log, serving.built.warnings);
    this.#stage.swap(serving);
    await this.#of.predecessor?.holding(this.#services);
    this.firstKey = await firstKey(config, this.#services);
    const { clients: handed = [], admin: fd } = this.#of.handed ?? {};
    this.#sockets = [...of.sockets, ...ownSockets(config, this.#of.handed)];
    this.#office = this.#scope.own(this.#officeOf());
    await this.#office.open(fd);
    await overBetween(this.stateDir);
    await of.waiting?.close();
    if (size > 1) {
      const problems = await this.#spawn(of, serving);
      if (problems.length > 0) return problems;
    } else this.#door = await this.#stage.listen(handed.map((fd) => ({ fd })));
    this.#follow(serving);
    this.#office.keep();
    this.#succession = this.#mayEnd(of.held, of.noted);
    await this.#of.predecessor?.serving();
    return undefined;
  }

  #mayEnd(held: HeldStore, noted: Descriptors): Succession {
    return new Succession({
      options: this.#of,
      services: this.#services,
      stage: this.#stage,
      changes: this.#changes!,
      office: this.#office,
      held,
      noted,
      sockets: this.#sockets,
      door: () => this.#door!,
      renew: (loaded, config) => replaced(this.#reloadable(), loaded, config),
    });
  }

  upgrade = (): Promise<number> =>
    this.#succession.upgrade(
      () => this.#stopping === undefined,
      () => (this.#stopping = this.#leave()),
    );

  /** What is under way here is served to its end; everything new is the successor's. */
  async #leave(): Promise<void> {
    this.#stage.drain(false);
    this.#sayCut(await this.#door?.leave(this.#stage.current.config.drainMs));
    await this.#stage.end();
    await this.#scope[Symbol.asyncDispose]();
    this.#succession.over();
    this.#of.log.flush();
  }

  #sayCut(cut = 0): void {
    if (cut > 0)
      this.#of.log.warn({ cut }, "the drain time is over; what was left has been cut off");
  }

  /** Of other instances. What is told before there are services is read once there are. */
  hear = (news: StoreNews): void =>
    this.#changes ? this.#changes.hear(news) : void (this.#early = true);

  peers: Peers["ask"] = async (id, question, near) =>
    (await this.#workers?.peers(id, question)) ?? this.#services.elsewhere.ask(id, question, near);

  readings = async (): Promise<Readings | undefined> => this.#readings?.read();

  readonly reload = latest(async (why: ReloadWhy) => {
    if (why !== "file")
      this.#services.observing.told({ type: "reload_asked", at: wallClock(), why });
    const [result, at] = [await reloaded(this.#reloadable(), why), wallClock()];
    const now = { ...result, at, why };
    tellReload(this.#services, this.#lastReload, now);
    this.#lastReload = now;
    return result;
  });

  alive = (withinMs: number): Promise<void> => ledgerAnswers(this.#services, withinMs);

  async status(): Promise<Status> {
    const own = statusOf(this, {
      version: this.#of.version,
      file: this.#of.file,
      startedAt: this.#startedAt,
      urls: this.urls,
      lastReload: this.#lastReload,
      lastUpgrade: this.#succession?.last,
      services: this.#services,
      stage: this.#stage,
      refresh: this.#refresh,
      before: this.#of.predecessor?.reading(),
    });
    return together(await own, await this.#workers?.status());
  }

  fleet = () => fleetOf(this.#services, factsOf(this.#of.version, this.url, this.#stage.current));
  async explain(model: string, name?: string, client = {}): Promise<Explanation> {
    const { built, config } = this.#stage.current;
    const { resting, quarantined, speeds } = await this.status();
    return explainIn(built, config, model, { name, client, resting, quarantined, speeds });
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const asked = [this.#stage.announce(), await this.#workers?.announce()].includes(true);
    if (!this.#of.attended)
      await this.#duck.announce(this.#stage.current.config, asked, this.#of.log);
    this.#stage.drain();
    this.#sayCut(await this.#door?.close(this.#stage.current.config.drainMs));
    // Until here it could be asked how far the end is.
    await this.#office.closeAdmin();
    await this.#stage.end();
    // What the gateway before still has open is settled here.
    await this.#of.predecessor?.over(this.#stage.current.config.drainMs);
    await this.#scope[Symbol.asyncDispose]();
    await removeSockets(this.#sockets);
    this.#of.log.flush();
  }

  async kill(): Promise<void> {
    this.#duck.hurry();
    await this.#door?.kill();
    await this.stop();
  }

  async #build(loaded: LoadedConfig, config: GatewayConfig, probe = true) {
    const kept = unkeepable(loaded, config, this.#services.store);
    if (kept) return { problems: [kept] };
    const number = this.#numbers + 1;
    const serving = await this.#stage.build({ number, loaded, config, probe });
    if (!("problems" in serving)) this.#numbers = number;
    return serving;
  }

  #officeOf(): Office {
    return new Office({
      gateway: this,
      options: this.#of,
      services: this.#services,
      changes: this.#changes!,
      workers: () => this.#workers,
      refresh: this.#refresh,
      stage: this.#stage,
    });
  }

  #reloadable = (): Reloadable => ({
    options: this.#of,
    log: this.#services.log,
    stage: this.#stage,
    build: (loaded, config) => this.#build(loaded, config),
    change: async (serving, { place }) => this.#workers?.change(this.#orderFor(serving), place),
    follow: (serving) => this.#follow(serving),
  });

  #follow = ({ built, config }: LiveGeneration): void =>
    this.#refresh.follow(linesOf(built, this.#services), config.refreshMs);

  async #spawn({ size, noted }: StartOf, serving: LiveGeneration): Promise<readonly Located[]> {
    const { WorkerPool } = await import("./workers/pool.ts");
    const pool = new WorkerPool(
      {
        size,
        program: this.#of.worker!,
        services: this.#services,
        listen: serving.config.listen,
        handed: this.#of.handed?.clients ?? [],
        shut: (place) => noted.shut(place),
        drainMs: () => this.#stage.current.config.drainMs,
        broken: this.#broken.resolve,
        ended: (source) => this.#readings!.ended(source),
      },
      this.#orderFor(serving),
    );
    const problems = await pool.open();
    if (problems.length > 0) return problems;
    this.#door = this.#workers = pool;
    this.#stage.opened();
    return problems;
  }

  #orderFor = ({ built, loaded }: LiveGeneration) =>
    orderOf(this.#of, built.gen.number, loaded.texts);
}
