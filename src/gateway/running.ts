// A running gateway: one set of services, one current generation, one open port. Reload builds a whole new generation and swaps
// one reference; nothing old is stopped before everything new is ready, so there is nothing to roll back.
import { wallClock } from "../lib/wall-clock.ts";
import type { Refresh } from "../catalogue/refresh.ts";
import type { LoadedConfig } from "../config/load.ts";
import { problem } from "../config/problems.ts";
import { inFileOrder } from "../config/report.ts";
import type { GatewayConfig, Located } from "../config/types.ts";
import type { Scope } from "../lib/scope.ts";
import type { StoreNews } from "../plugin/instance.ts";
import type { Readings } from "../plugin/readings.ts";
import type { Store } from "../plugin/store.ts";
import { Changes } from "./changes.ts";
import { openDoors } from "./admin/doors.ts";
import { commandsOf } from "./control/commands.ts";
import { explainIn } from "./control/explanation.ts";
import { firstKey } from "./services/first-key.ts";
import { readConfigOf, type GatewayOptions } from "./options.ts";
import { openServices, type ContextServices, type Services } from "./services/services.ts";
import { factsOf, fleetOf } from "./services/fleet.ts";
import { instancesOf, ledgerAnswers } from "./services/store.ts";
import type { AllReadings } from "./readings/all.ts";
import { readingAll } from "./readings/primary.ts";
import { latest } from "./reload/latest.ts";
import type { Listening } from "./http/listener.ts";
import { ADMIN_MS, endMs, LameDuck } from "./lame-duck.ts";
import { linesOf, refreshing } from "./generation/live-lists.ts";
import { GenerationSlot, type LiveGeneration } from "./generation/slot.ts";
import { readSettled } from "./reload/settled.ts";
import { staticKeys } from "./reload/static-keys.ts";
import { refusal, warn } from "./reload/config-log.ts";
import type { Explanation, Gateway, Reloaded, ReloadWhy, Status } from "./types.ts";
import { watchConfig } from "./reload/watch.ts";
import type { WorkerPool } from "./workers/pool.ts";
import type { WorkerConfig } from "./workers/commands.ts";
import { together } from "./workers/status.ts";

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
  #door: (Pick<Listening, "url" | "urls" | "inflight" | "close"> & { kill(): unknown }) | undefined;
  #admin: Listening | undefined;
  #workers: WorkerPool | undefined;
  #readings: AllReadings | undefined;
  #numbers = 0;
  #lastReload: Status["lastReload"];
  #stopping: Promise<void> | undefined;
  readonly #duck = new LameDuck();
  readonly #broken = Promise.withResolvers<Error>();
  firstKey: string | undefined;

  /** `scope` ends with it. */
  constructor(of: GatewayOptions, scope: Scope) {
    this.#of = of;
    this.#scope = scope;
  }

  get url(): string {
    return this.#door?.url ?? "";
  }
  get adminUrl(): string | undefined {
    return this.#admin?.url;
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

  async start(of: {
    loaded: LoadedConfig;
    config: GatewayConfig;
    contextServices: ContextServices;
    store: Promise<Store>;
    /** Processes. */
    size: number;
  }): Promise<readonly Located[] | undefined> {
    const { loaded, config, size } = of;
    this.#services = await openServices(config, {
      ...of,
      mask: this.#of.mask,
      scope: this.#scope,
      admin: () => this.#stage.current.config.admin,
      publicUrl: () => this.#stage.current.config.publicUrl ?? this.url,
      about: () => factsOf(this.#of.version, this.url, this.#stage?.current),
    });
    this.#changes = new Changes(this.#services, () => this.#workers);
    if (this.#early) await this.#changes.accounts();
    this.#stage = new GenerationSlot(this.#services);
    this.#refresh = this.#scope.own(refreshing(this.#services));
    const here = { services: this.#services, stage: this.#stage, refresh: this.#refresh };
    const sources = () => this.#workers?.sources() ?? [];
    this.#readings = readingAll({ ...here, version: this.#of.version }, sources);
    const serving = await this.#build(loaded, config);
    if ("problems" in serving) return serving.problems;
    warn(this.#of.log, serving.built.warnings);
    this.#stage.swap(serving);
    this.firstKey = await firstKey(config, this.#services);
    const { clients: handed = [], admin: fd } = this.#of.handed ?? {};
    const doors = { stage: this.#stage, scope: this.#scope, fd };
    this.#admin = await openDoors(this.#commands(), this.#services, doors);
    this.#scope.defer(() => this.#admin?.close(0));
    if (size > 1) {
      const problems = await this.#spawn(size, serving);
      if (problems.length > 0) return problems;
    } else this.#door = await this.#stage.listen(handed.map((fd) => ({ fd })));
    this.#follow(serving);
    this.#stage.retain(this.#scope);
    this.#watch();
    return undefined;
  }

  /** Of other instances. What is told before there are services is read once there are. */
  hear(news: StoreNews): void {
    if (this.#changes) this.#changes.hear(news);
    else this.#early = true;
  }

  /** The same plugin in the other processes. */
  peers = (id: string, question: unknown) => this.#workers?.peers(id, question);

  readings = async (): Promise<Readings | undefined> => this.#readings?.read();

  readonly reload = latest(async (why: ReloadWhy) => {
    if (why !== "file")
      this.#services.observing.told({ type: "reload_asked", at: wallClock(), why });
    const [result, at] = [await this.#reload(why), wallClock()];
    this.#lastReload = { ...result, at, why };
    const { ok, generation, unchanged } = result;
    if (!unchanged) this.#services.observing.told({ type: "reloaded", at, why, ok, generation });
    return result;
  });

  async #reload(why: ReloadWhy): Promise<Reloaded> {
    const log = this.#services.log;
    const current = this.#stage.current;
    const generation = current.built.gen.number;
    const loaded = await readSettled(() => readConfigOf(this.#of), current.loaded.sources);
    const refuse = (problems: readonly Located[], refused?: readonly string[]) =>
      refusal(log, { why, generation, problems, ...(refused && { refused }) });
    if (!loaded.config) return refuse(loaded.problems);
    const differing = staticKeys(current.config, loaded.config);
    if (differing.length > 0) return refuse(loaded.problems, differing);
    if (loaded.config.hash === current.config.hash)
      return { ok: true, generation, unchanged: true, problems: loaded.problems };
    const were = current.config.providers.size;
    if (were > 0 && loaded.config.providers.size === 0 && !loaded.config.allowEmpty)
      return refuse([...loaded.problems, loaded.place("providers", problem.noProviderLeft(were))]);
    const serving = await this.#build(loaded, loaded.config);
    const inOrder = (found: readonly Located[]) =>
      inFileOrder([...loaded.problems, ...found], loaded.sources);
    if ("problems" in serving) return refuse(inOrder(serving.problems));
    const problems = await this.#workers?.change(this.#orderFor(serving), loaded.place);
    if (problems && problems.length > 0) {
      await serving.built.retire();
      return refuse(inOrder(problems));
    }
    const taken = inOrder(serving.built.warnings);
    warn(log, taken);
    this.#stage.swap(serving);
    this.#follow(serving);
    const now = serving.built.gen.number;
    log.info({ why, generation: now }, "reloaded");
    return { ok: true, generation: now, problems: taken };
  }

  alive = (withinMs: number): Promise<void> => ledgerAnswers(this.#services, withinMs);

  async status(): Promise<Status> {
    const { built, config, at } = this.#stage.current;
    return together(
      {
        version: this.#of.version,
        pid: process.pid,
        url: this.url,
        urls: this.#door?.urls ?? [],
        admin: this.adminUrl,
        file: this.#of.file,
        stateDir: this.stateDir,
        state: this.#stage.draining ? "draining" : "serving",
        startedAt: this.#startedAt,
        generation: built.gen.number,
        configHash: config.hash,
        loadedAt: at,
        lastReload: this.#lastReload,
        generations: this.#stage.generations(),
        leftOut: [...config.unmounted].map(([provider, why]) => ({ provider, why })),
        lists: this.#refresh.status(),
        resting: this.#services.rests.list(),
        quarantined: this.#services.conducts.list(),
        speeds: this.#services.rests.speeds(),
        files: this.#services.files.counts(),
        instances: await instancesOf(this.#services.store),
      },
      await this.#workers?.status(),
    );
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
    const cut = (await this.#door?.close(this.#stage.current.config.drainMs)) ?? 0;
    if (cut > 0)
      this.#services.log.warn({ cut }, "the drain time is over; what was left has been cut off");
    // Until here it could be asked how far the end is.
    await this.#admin?.close(ADMIN_MS);
    this.#admin = undefined;
    await this.#stage.end();
    await this.#scope[Symbol.asyncDispose]();
    this.#of.log.flush();
  }

  async kill(): Promise<void> {
    this.#duck.hurry();
    await this.#door?.kill();
    await this.stop();
  }

  async #build(loaded: LoadedConfig, config: GatewayConfig) {
    const number = this.#numbers + 1;
    const serving = await this.#stage.build({ number, loaded, config });
    if (!("problems" in serving)) this.#numbers = number;
    return serving;
  }

  #follow(serving: LiveGeneration): void {
    this.#refresh.follow(linesOf(serving.built), serving.config.refreshMs);
  }

  async #spawn(size: number, serving: LiveGeneration): Promise<readonly Located[]> {
    const { WorkerPool } = await import("./workers/pool.ts");
    const pool = new WorkerPool(
      {
        size,
        program: this.#of.worker!,
        services: this.#services,
        listen: serving.config.listen,
        handed: this.#of.handed?.clients ?? [],
        drainMs: () => this.#stage.current.config.drainMs,
        broken: this.#broken.resolve,
        ended: (source) => this.#readings!.ended(source),
      },
      this.#orderFor(serving),
    );
    const problems = await pool.open();
    if (problems.length === 0) this.#door = this.#workers = pool;
    return problems;
  }

  #orderFor({ built, loaded }: LiveGeneration): WorkerConfig {
    const { file, env, overrides = {} } = this.#of;
    return { number: built.gen.number, file, texts: loaded.texts, env: { ...env }, overrides };
  }

  #commands() {
    return commandsOf({
      gateway: this,
      services: this.#services,
      changes: this.#changes!,
      workers: () => this.#workers,
      options: this.#of,
      refresh: this.#refresh,
      current: () => this.#stage.current,
    });
  }

  #watch(): void {
    if (this.#of.watch === false || this.#of.file === undefined) return;
    const reload = () => this.reload("file");
    this.#scope.own(watchConfig(() => this.#stage.current.loaded, reload, this.#services.log));
  }
}
