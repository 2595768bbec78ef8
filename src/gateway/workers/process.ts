// One process of several: services with a borrowed store, a slot for generations, a port that it shares. What it does it is told to do by
// the primary, and when the primary is gone it is gone too.
import { resolve } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import { createLists } from "../../catalogue/lists.ts";
import { defaultText } from "../../config/default.ts";
import { loadConfig } from "../../config/load.ts";
import type { GatewayConfig, LoadPlugin, Located } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import type { Mask } from "../../lib/mask.ts";
import { Scope, Shared } from "../../lib/scope.ts";
import { KnownAccounts } from "../services/accounts.ts";
import { followHealth, Health } from "../services/health.ts";
import { openServices, type Services } from "../services/services.ts";
import type { Listening } from "../http/listener.ts";
import { forwarding } from "../observers/forwarding.ts";
import { ownPort } from "../http/own-port.ts";
import { GenerationSlot, type LiveGeneration } from "../generation/slot.ts";
import { OwnReader } from "../readings/own.ts";
import { createPeers } from "../services/peers.ts";
import { unreachableIn } from "../status-of.ts";
import { borrowed } from "./lent-store.ts";
import { createLink, type Channel, type Link } from "./link.ts";
import type { WorkerCommands, WorkerConfig } from "./commands.ts";

export interface WorkerOptions {
  readonly load: LoadPlugin;
  readonly log: Log;
  readonly mask: Mask;
}

/** Does what the process at the other end asks for. */
export const work = (of: WorkerOptions, channel: Channel): WorkerProcess =>
  new WorkerProcess(of, channel);

interface Opened {
  readonly services: Services;
  readonly slot: GenerationSlot;
  readonly reader: OwnReader;
}

class WorkerProcess {
  readonly #of: WorkerOptions;
  readonly #scope = new Scope();
  readonly #lists = createLists();
  readonly #accounts = new KnownAccounts();
  readonly #health = new Health();
  readonly #startedAt = wallClock();
  readonly #over = Promise.withResolvers<void>();
  readonly #link: Link;
  readonly #observing: ReturnType<typeof forwarding>;
  readonly #peers: ReturnType<typeof createPeers>;
  #here: Opened | undefined;
  #next: LiveGeneration | undefined;
  #url = "";
  #listening: Listening | undefined;

  constructor(of: WorkerOptions, channel: Channel) {
    this.#of = of;
    this.#link = createLink(channel, this.#commands());
    this.#observing = forwarding(() => this.#link);
    this.#peers = createPeers((id, question, near) => this.#link.ask("peers", id, question, near));
    channel.once("disconnect", this.#over.resolve);
  }

  /** Resolves when this one is to end. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Something is wrong here: another process should take over. */
  ailing(): void {
    this.#link.tell("ailing");
  }

  #commands(): WorkerCommands {
    return {
      prepare: (of) => this.#prepare(of),
      commit: (at) => this.#commit(at),
      abandon: () => this.#abandon(),
      lists: (provider, heard) => this.#heard(provider, heard),
      peer: (id, question) => this.#peers.asked(id, question),
      forget: () => this.#here?.services.keys.forget(),
      wake: (provider, credential) => this.#here?.services.rests.wake(provider, credential),
      account: (record) => this.#accounts.put(record),
      accounts: () => this.#accounts.read(borrowed(this.#link)),
      health: (trouble) =>
        this.#here ? followHealth(this.#here.services, trouble) : this.#health.set(trouble),
      status: () => this.#status(),
      readings: () => this.#here!.reader.read(),
      underWay: () => this.#here?.services.underWay.list() ?? [],
      announce: () => this.#here!.slot.announce(),
      stop: (drainMs, succeeded) => this.#stop(drainMs, succeeded),
    };
  }

  async #prepare(of: Parameters<WorkerCommands["prepare"]>[0]): Promise<readonly Located[]> {
    const { number, file, texts, env, overrides } = of;
    await this.#abandon();
    const loaded = await loadConfig(resolve(file ?? "gateway.yaml"), {
      env,
      texts,
      overrides,
      load: this.#of.load,
      ...(file === undefined && { text: defaultText() }),
    });
    const { config } = loaded;
    if (!config) return loaded.problems;
    this.#here ??= await this.#open(config, env);
    // The primary has asked providers whether they are ready, for all workers.
    const built = { number, loaded, config, probe: false, observers: false };
    const serving = await this.#here.slot.build(built);
    if ("problems" in serving) return serving.problems;
    this.#next = serving;
    return [];
  }

  async #commit(at: Parameters<WorkerCommands["commit"]>[0]): Promise<readonly string[]> {
    const { slot } = this.#here!;
    if (this.#next) slot.swap(this.#next);
    this.#next = undefined;
    this.#listening ??= await slot.listen(at);
    this.#url = this.#listening.url;
    return this.#listening.urls;
  }

  async #abandon(): Promise<void> {
    const unwanted = this.#next;
    this.#next = undefined;
    await unwanted?.built.retire();
  }

  #heard(provider: string, heard: Parameters<WorkerCommands["lists"]>[1] = []): void {
    for (const { credential, models, at } of heard)
      this.#lists.replace(provider, credential, models, at);
    const credentials = heard.map(({ credential }) => credential);
    this.#lists.keep(provider, credentials);
  }

  #status(): ReturnType<WorkerCommands["status"]> {
    const { services, slot } = this.#here!;
    return {
      pid: process.pid,
      startedAt: this.#startedAt,
      generations: slot.generations(),
      resting: services.rests.list(),
      quarantined: services.conducts.list(),
      unreachable: unreachableIn(slot.current.built),
      speeds: services.rests.speeds(),
      files: services.files.counts(),
    };
  }

  async #stop(drainMs: number, succeeded: boolean): Promise<number> {
    const slot = this.#here?.slot;
    slot?.drain(!succeeded);
    const how = succeeded ? "leave" : "close";
    const cut = (await this.#listening?.[how](drainMs)) ?? 0;
    await this.#abandon();
    await slot?.end();
    this.#observing.flush();
    await this.#scope[Symbol.asyncDispose]();
    // The answer goes first.
    setImmediate(this.#over.resolve);
    return cut;
  }

  async #open(config: GatewayConfig, env: WorkerConfig["env"]): Promise<Opened> {
    const { log, mask } = this.#of;
    const services = await openServices(config, {
      contextServices: {
        log,
        stateDir: config.stateDir,
        proxy: config.proxy,
        env,
        shared: new Shared(),
        peers: this.#peers,
        own: () => ownPort(this.#listening?.urls ?? [], config.listen),
        readings: () => this.#link.ask("readings"),
      },
      mask,
      scope: this.#scope,
      publicUrl: () => this.#here!.slot.current.config.publicUrl ?? this.#url,
      store: borrowed(this.#link),
      lists: this.#lists,
      accounts: this.#accounts,
      observing: this.#observing,
      borrowed: {
        health: this.#health,
        troubled: (why) => this.#link.tell("troubled", why),
      },
      claims: {
        begin: (claim) => this.#link.ask("claim", claim),
        end: (claim, outcome) => this.#link.ask("claimOver", claim, outcome),
        gone() {},
      },
    });
    const slot = new GenerationSlot(services);
    return { services, slot, reader: new OwnReader(services, slot) };
  }
}
