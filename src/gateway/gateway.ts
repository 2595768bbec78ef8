// A running gateway: one house, one current generation, one open port. Reload builds a whole new generation and swaps
// one reference; nothing old is stopped before everything new is ready, so there is nothing to roll back.
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { Refresh } from "../catalogue/refresh.ts";
import { defaultText } from "../config/default.ts";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import { problem } from "../config/problems.ts";
import { inFileOrder } from "../config/report.ts";
import type { Overrides } from "../config/resolve.ts";
import type { GatewayConfig, Load, Located } from "../config/types.ts";
import type { Mask } from "../lib/mask.ts";
import type { Log } from "../lib/log.ts";
import { Scope } from "../lib/scope.ts";
import { commandsOf } from "./commands.ts";
import { serveControl } from "./control.ts";
import { explainIn } from "./explanation.ts";
import { firstKey } from "./first-key.ts";
import { openHouse, type House } from "./house.ts";
import { latest } from "./latest.ts";
import type { Listening } from "./listener.ts";
import { linesOf, refreshing } from "./live.ts";
import { Stage, type Serving } from "./stage.ts";
import { staticKeys } from "./static-keys.ts";
import { refusal, warn } from "./telling.ts";
import type { Explanation, Gateway, Reloaded, Status } from "./types.ts";
import { createTwins } from "./twins.ts";
import { watchFiles } from "./watch.ts";
import { Crew } from "./workers/crew.ts";
import type { Order } from "./workers/order.ts";
import { together } from "./workers/together.ts";

export interface GatewayOptions {
  /** Undefined: what ships with the package. */
  file: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  log: Log;
  mask: Mask;
  version: string;
  load: Load;
  overrides?: Overrides;
  /** Reload when a file of the config changes. */
  watch?: boolean;
  /** The program that a worker runs: what calls `work`. Without one there is one process. */
  worker?: string;
}

/** Opening a port alone takes the heaviest import of all: it loads while the store opens. Workers do without. */
void import("./bind.ts");

/** What is open to clients: this process's own port, or the crew's. */
type Door = Pick<Listening, "url" | "inflight" | "close"> & { kill(): unknown };

export async function createGateway(
  of: GatewayOptions,
): Promise<Gateway | { problems: readonly Located[] }> {
  const running = new Running(of);
  const problems = await running.start();
  return problems ? { problems } : running;
}

type Why = NonNullable<Status["lastReload"]>["why"];

class Running implements Gateway {
  readonly #of: GatewayOptions;
  readonly #scope = new Scope();
  readonly #startedAt = Date.now();
  #house!: House;
  #refresh!: Refresh;
  #stage!: Stage;
  #door: Door | undefined;
  #crew: Crew | undefined;
  #numbers = 0;
  #lastReload: Status["lastReload"];
  #stopping: Promise<void> | undefined;
  readonly #broken = Promise.withResolvers<Error>();
  firstKey: string | undefined;

  constructor(of: GatewayOptions) {
    this.#of = of;
  }

  get url(): string {
    return this.#door?.url ?? "";
  }
  get stateDir(): string {
    return this.#house.stateDir;
  }
  get busy(): number {
    return this.#door?.inflight() ?? 0;
  }
  get broken(): Promise<Error> {
    return this.#broken.promise;
  }

  async start(): Promise<readonly Located[] | undefined> {
    const loaded = await this.#load();
    const { config } = loaded;
    if (!config) return loaded.problems;
    warn(this.#of.log, loaded.problems);
    try {
      const problems = await this.#start(loaded, config);
      if (!problems) return undefined;
      await this.#scope[Symbol.asyncDispose]();
      return inFileOrder([...loaded.problems, ...problems], loaded.sources);
    } catch (error) {
      await this.#scope[Symbol.asyncDispose]().catch(() => {});
      throw error;
    }
  }

  async #start(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<readonly Located[] | undefined> {
    const size = config.workers === "auto" ? availableParallelism() : config.workers;
    const { worker } = this.#of;
    if (size > 1 && worker === undefined)
      return [loaded.place("workers", problem.noWorkers(config.workers))];
    await this.#open(config);
    const serving = await this.#build(loaded, config);
    if ("problems" in serving) return serving.problems;
    this.#swap(serving);
    this.firstKey = await firstKey(config, this.#house);
    this.#scope.own(await serveControl({ path: this.stateDir, ...this.#commands() }));
    if (size > 1) {
      const problems = await this.#hire(size, worker!, serving);
      if (problems.length > 0) return problems;
    } else this.#door = await this.#stage.listen();
    this.#watch();
    return undefined;
  }

  readonly reload = latest(async (why: Why) => {
    const result = await this.#reload(why);
    this.#lastReload = { ...result, at: Date.now(), why };
    return result;
  });

  async #reload(why: Why): Promise<Reloaded> {
    const log = this.#house.log;
    const current = this.#stage.current;
    const generation = current.built.gen.number;
    const loaded = await this.#load();
    const refuse = (problems: readonly Located[], refused?: readonly string[]) =>
      refusal(log, { why, generation, problems, ...(refused && { refused }) });
    if (!loaded.config) return refuse(loaded.problems);
    const differing = staticKeys(current.config, loaded.config);
    if (differing.length > 0) return refuse(loaded.problems, differing);
    if (loaded.config.hash === current.config.hash)
      return { ok: true, generation, unchanged: true, problems: loaded.problems };
    const serving = await this.#build(loaded, loaded.config);
    const inOrder = (found: readonly Located[]) =>
      inFileOrder([...loaded.problems, ...found], loaded.sources);
    if ("problems" in serving) return refuse(inOrder(serving.problems));
    const problems = await this.#crew?.change(this.#orderFor(serving), loaded.place);
    if (problems && problems.length > 0) {
      await serving.built.retire();
      return refuse(inOrder(problems));
    }
    warn(log, loaded.problems);
    this.#swap(serving);
    const now = serving.built.gen.number;
    log.info({ why, generation: now }, "reloaded");
    return { ok: true, generation: now, problems: loaded.problems };
  }

  async status(): Promise<Status> {
    const { built, config, at } = this.#stage.current;
    return together(
      {
        version: this.#of.version,
        pid: process.pid,
        url: this.url,
        file: this.#of.file,
        stateDir: this.stateDir,
        state: this.#stage.draining ? "draining" : "serving",
        startedAt: this.#startedAt,
        generation: built.gen.number,
        configHash: config.hash,
        loadedAt: at,
        lastReload: this.#lastReload,
        generations: this.#stage.generations(),
        lists: this.#refresh.status(),
        resting: this.#house.rests.list(),
        files: this.#house.files.counts(),
      },
      await this.#crew?.status(),
    );
  }

  async explain(model: string, frontend?: string): Promise<Explanation> {
    const { built, config } = this.#stage.current;
    return explainIn(built, config, model, frontend);
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#stage.draining = true;
    const cut = (await this.#door?.close(this.#stage.current.config.drainMs)) ?? 0;
    if (cut > 0)
      this.#house.log.warn({ cut }, "the drain time is over; what was left has been cut off");
    await this.#stage.end();
    await this.#scope[Symbol.asyncDispose]();
    this.#of.log.flush();
  }

  async kill(): Promise<void> {
    await this.#door?.kill();
    await this.stop();
  }

  #load(): Promise<LoadedConfig> {
    const { file, env, overrides } = this.#of;
    return loadConfig(resolve(file ?? "gateway.yaml"), {
      env,
      load: this.#of.load,
      ...(overrides && { overrides }),
      ...(file === undefined && { text: defaultText() }),
    });
  }

  async #open(config: GatewayConfig): Promise<void> {
    const { log, mask } = this.#of;
    this.#house = await openHouse(config, {
      log,
      mask,
      scope: this.#scope,
      publicUrl: () => this.#stage.current.config.publicUrl ?? this.url,
      twins: createTwins(async (id, question) => this.#crew?.twins(id, question)),
    });
    this.#stage = new Stage(this.#house);
    this.#refresh = this.#scope.own(refreshing(this.#house));
  }

  async #build(loaded: LoadedConfig, config: GatewayConfig) {
    const number = this.#numbers + 1;
    const serving = await this.#stage.build({ number, loaded, config });
    if (!("problems" in serving)) this.#numbers = number;
    return serving;
  }

  #swap(serving: Serving): void {
    this.#stage.swap(serving);
    this.#refresh.follow(linesOf(serving.built), serving.config.refreshMs);
  }

  async #hire(size: number, program: string, serving: Serving): Promise<readonly Located[]> {
    const crew = new Crew(
      {
        size,
        program,
        house: this.#house,
        listen: serving.config.listen,
        drainMs: () => this.#stage.current.config.drainMs,
        broken: this.#broken.resolve,
      },
      this.#orderFor(serving),
    );
    const problems = await crew.open();
    if (problems.length === 0) this.#door = this.#crew = crew;
    return problems;
  }

  #orderFor({ built, loaded }: Serving): Order {
    const { file, env, overrides = {} } = this.#of;
    return { number: built.gen.number, file, texts: loaded.texts, env: { ...env }, overrides };
  }

  #commands() {
    return commandsOf({
      gateway: this,
      house: this.#house,
      forget: async () => {
        this.#house.keys.forget();
        await this.#crew?.forget();
      },
      refresh: this.#refresh,
      current: () => this.#stage.current,
    });
  }

  #watch(): void {
    if (this.#of.watch === false || this.#of.file === undefined) return;
    const { log } = this.#house;
    this.#scope.own(
      watchFiles({
        files: () => this.#stage.current.loaded.sources,
        read: this.#stage.current.loaded.texts,
        changed: () => this.reload("file"),
        failed: (error: unknown) => log.error({ err: error }, "the config cannot be watched"),
      }),
    );
  }
}
