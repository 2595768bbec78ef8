// A running gateway: one house, one current generation, one open port. Reload builds a whole new generation and swaps
// one reference; nothing old is stopped before everything new is ready, so there is nothing to roll back.
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import type { Refresh } from "../catalogue/refresh.ts";
import { defaultText } from "../config/default.ts";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import { secretsOf } from "../config/redact.ts";
import type { Overrides } from "../config/resolve.ts";
import type { GatewayConfig, Load, Located } from "../config/types.ts";
import type { Mask } from "../lib/mask.ts";
import type { Log } from "../lib/log.ts";
import { Scope } from "../lib/scope.ts";
import { toHandler } from "./adapter.ts";
import { createApp } from "./app.ts";
import { commandsOf } from "./commands.ts";
import { serveControl } from "./control.ts";
import { explainIn } from "./explanation.ts";
import { firstKey } from "./first-key.ts";
import { build, type Built } from "./generation.ts";
import { openHouse, type House } from "./house.ts";
import { lineOf } from "./line.ts";
import { linesOf, refreshing } from "./live.ts";
import { listen, type Listening } from "./listener.ts";
import { refusal, warn } from "./telling.ts";
import { staticKeys } from "./static-keys.ts";
import type { Explanation, Gateway, Reloaded, Status } from "./types.ts";
import { watchFiles } from "./watch.ts";

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
}

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

interface Serving {
  built: Built;
  config: GatewayConfig;
  loaded: LoadedConfig;
  handler: Handler;
  at: number;
}

export async function createGateway(
  of: GatewayOptions,
): Promise<Gateway | { problems: readonly Located[] }> {
  const running = new Running(of);
  const problems = await running.start();
  return problems ? { problems } : running;
}

class Running implements Gateway {
  readonly #of: GatewayOptions;
  readonly #scope = new Scope();
  readonly #startedAt = Date.now();
  #house!: House;
  #refresh!: Refresh;
  #current!: Serving;
  #retired = new Set<Built>();
  #listening: Listening | undefined;
  #numbers = 0;
  #state: "serving" | "draining" = "serving";
  #lastReload: Status["lastReload"];
  #reloading: Promise<Reloaded> | undefined;
  #again = false;
  #stopping: Promise<void> | undefined;
  firstKey: string | undefined;

  constructor(of: GatewayOptions) {
    this.#of = of;
  }

  get url(): string {
    return this.#listening?.url ?? "";
  }
  get stateDir(): string {
    return this.#house.stateDir;
  }
  get busy(): number {
    return this.#listening?.inflight() ?? 0;
  }

  async start(): Promise<readonly Located[] | undefined> {
    const loaded = await this.#load();
    const { config } = loaded;
    if (!config) return loaded.problems;
    warn(this.#of.log, loaded.problems);
    try {
      await this.#open(config);
      const serving = await this.#build(loaded, config);
      if ("problems" in serving) {
        await this.#scope[Symbol.asyncDispose]();
        return [...loaded.problems, ...serving.problems];
      }
      await this.#swap(serving);
      this.firstKey = await firstKey(config, this.#house);
      await this.#serve(config);
      return undefined;
    } catch (error) {
      await this.#scope[Symbol.asyncDispose]().catch(() => {});
      throw error;
    }
  }

  /** Whoever asks while a reload runs gets the one after it: the file may have changed again. */
  reload(why: "file" | "signal" | "command"): Promise<Reloaded> {
    if (this.#reloading) {
      this.#again = true;
      return this.#reloading.then(() =>
        this.#again ? this.reload(why) : (this.#reloading ?? this.reload(why)),
      );
    }
    this.#again = false;
    this.#reloading = this.#reload(why)
      .then((result) => {
        this.#lastReload = { ...result, at: Date.now(), why };
        return result;
      })
      .finally(() => (this.#reloading = undefined));
    return this.#reloading;
  }

  async #reload(why: string): Promise<Reloaded> {
    const log = this.#house.log;
    const generation = this.#current.built.gen.number;
    const loaded = await this.#load();
    const refuse = (problems: readonly Located[], refused?: readonly string[]) =>
      refusal(log, { why, generation, problems, ...(refused && { refused }) });
    if (!loaded.config) return refuse(loaded.problems);
    const differing = staticKeys(this.#current.config, loaded.config);
    if (differing.length > 0) return refuse(loaded.problems, differing);
    if (loaded.config.hash === this.#current.config.hash)
      return { ok: true, generation, unchanged: true, problems: loaded.problems };
    const serving = await this.#build(loaded, loaded.config);
    if ("problems" in serving) return refuse([...loaded.problems, ...serving.problems]);
    warn(this.#of.log, loaded.problems);
    await this.#swap(serving);
    const now = serving.built.gen.number;
    log.info({ why, generation: now }, "reloaded");
    return { ok: true, generation: now, problems: loaded.problems };
  }

  status(): Status {
    const { built, config, at } = this.#current;
    return {
      version: this.#of.version,
      pid: process.pid,
      url: this.url,
      file: this.#of.file,
      stateDir: this.stateDir,
      state: this.#state,
      startedAt: this.#startedAt,
      generation: built.gen.number,
      configHash: config.hash,
      loadedAt: at,
      lastReload: this.#lastReload,
      generations: [built, ...this.#retired].map((b) => ({
        generation: b.gen.number,
        inFlight: b.inFlight(),
      })),
      lists: this.#refresh.status(),
      resting: this.#house.rests.list(),
      files: this.#house.files.counts(),
    };
  }

  async explain(model: string, frontend?: string): Promise<Explanation> {
    const { built, config } = this.#current;
    return explainIn(built, config, model, frontend);
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#state = "draining";
    const cut = (await this.#listening?.close(this.#current.config.drainMs)) ?? 0;
    if (cut > 0)
      this.#house.log.warn({ cut }, "the drain time is over; what was left has been cut off");
    await this.#end();
  }

  async kill(): Promise<void> {
    this.#listening?.kill();
    await this.stop();
  }

  async #end(): Promise<void> {
    await Promise.all([this.#current.built.retire(), ...[...this.#retired].map((b) => b.retire())]);
    await this.#scope[Symbol.asyncDispose]();
    this.#of.log.flush();
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
      publicUrl: () => this.#current.config.publicUrl ?? this.url,
    });
    this.#refresh = this.#scope.own(refreshing(this.#house));
  }

  async #build(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<Serving | { problems: readonly Located[] }> {
    this.#house.log.secrets(secretsOf(config));
    const number = this.#numbers + 1;
    const built = await build({ number, config, house: this.#house, place: loaded.place });
    if ("problems" in built) return built;
    this.#numbers = number;
    const app = createApp({
      gen: built.gen,
      frontends: built.frontends,
      fetch: lineOf,
      ready: () => this.#ready(),
      files: this.#house.files,
    });
    return { built, config, loaded, handler: toHandler(app), at: Date.now() };
  }

  #ready(): { ready: boolean; state: string } {
    if (this.#state === "draining") return { ready: false, state: "draining" };
    if (!this.#house.ledger.healthy) return { ready: false, state: "ledger_down" };
    return { ready: true, state: "ready" };
  }

  async #swap(serving: Serving): Promise<void> {
    const old = this.#current as Serving | undefined;
    this.#current = serving;
    this.#of.log.level(serving.config.log.level);
    this.#refresh.follow(linesOf(serving.built), serving.config.refreshMs);
    this.#house.files.limit(serving.config.files);
    if (!old) return;
    this.#retired.add(old.built);
    void old.built.retire().then(() => {
      this.#retired.delete(old.built);
      this.#house.log.debug({ generation: old.built.gen.number }, "a generation has ended");
    });
  }

  async #serve(config: GatewayConfig): Promise<void> {
    const handler: Handler = (req, res) => this.#current.handler(req, res);
    const { log } = this.#house;
    const commands = commandsOf({
      gateway: this,
      house: this.#house,
      refresh: this.#refresh,
      built: () => this.#current.built,
    });
    this.#scope.own(await serveControl({ path: this.stateDir, commands }));
    this.#listening = await listen({
      ...config.listen,
      handler,
      refused: (refusal, who) =>
        log.debug(
          { code: refusal.code, status: refusal.status, ...who },
          "a request was turned away",
        ),
    });
    if (this.#of.watch !== false && this.#of.file !== undefined)
      this.#scope.own(
        watchFiles({
          files: () => this.#current.loaded.sources,
          changed: () => this.reload("file"),
          failed: (error: unknown) => log.error({ err: error }, "the config cannot be watched"),
        }),
      );
  }
}
