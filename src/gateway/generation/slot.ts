// The generation that answers now, and older ones until their last exchange is over. A new one is whole before it is swapped
// in, and no old one stops before that.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Scope } from "../../lib/scope.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { secretsOf } from "../../config/redact.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import type { HealthName } from "../../plugin/readings.ts";
import type { TurnedAway } from "../../plugin/observer.ts";
import type { Generation } from "../../walk/generation.ts";
import type { AdminApi } from "../admin/api.ts";
import { isApi } from "../admin/paths.ts";
import { mustHaveAdmin } from "../admin/needed.ts";
import { listenAdmin } from "../admin/listener.ts";
import { toHandler } from "../http/adapter.ts";
import { createApp, stray, type Refused } from "../http/app.ts";
import { straight } from "../http/straight.ts";
import { build, type BuiltGeneration } from "./build.ts";
import { healthName } from "../services/health.ts";
import { retaining } from "../services/retention.ts";
import { answered } from "../services/nodes.ts";
import type { Services } from "../services/services.ts";
import type { Refusal } from "../http/door.ts";
import { type BoundPlace, placeOf } from "../http/places.ts";
import {
  listen,
  type Listening,
  type ListenOptions,
  type RefusedClient,
} from "../http/listener.ts";
import type { Status } from "../types.ts";

/** A generation with the routes that reach it. */
export interface LiveGeneration {
  readonly built: BuiltGeneration;
  readonly config: GatewayConfig;
  readonly loaded: LoadedConfig;
  readonly handler: ListenOptions["handler"];
  /** Of the admin listener. */
  readonly admin: ListenOptions["handler"];
  readonly at: number;
}

export class GenerationSlot {
  readonly #services: Services;
  readonly #retired = new Set<BuiltGeneration>();
  #current: LiveGeneration | undefined;
  #listening: Listening | undefined;
  #draining = false;
  #open = false;
  #asked = false;

  constructor(services: Services) {
    this.#services = services;
  }

  /** What `/readyz` says, here and in `status`, the console, and metrics. */
  get state(): HealthName {
    const { trouble } = this.#services.health;
    return healthName({ draining: this.#draining, open: this.#open, trouble });
  }

  /** Clients can connect, here or in a worker. */
  opened(): void {
    this.#open = true;
  }

  /**
   * `/readyz` says that it ends, and all are still served. True: it has been asked before, so a balancer wants to know that
   * before the port closes.
   */
  announce(): boolean {
    this.#draining = true;
    this.#listening?.announce();
    return this.#asked;
  }

  /**
   * No new client is wanted, and what a plugin does without end may end: those that listen or write for long hear of it. `told`:
   * `/readyz` says so too.
   */
  drain(told = true): void {
    this.#draining ||= told;
    this.#current?.built.leave();
  }

  /** Before the first swap there is none to ask. */
  get current(): LiveGeneration {
    return this.#current!;
  }

  /** Opens the port: a client meets the generation of that moment. `bound`: where, if that is not for the file to say. */
  async listen(bound: readonly (BoundPlace | undefined)[] = []): Promise<Listening> {
    const { config } = this.current;
    this.opened();
    const [first, ...also] = await Promise.all(
      config.listen.map((each, i) => placeOf(each, bound[i])),
    );
    const listening = await listen({
      ...first!,
      also,
      limits: limitsOf(config),
      handler: (req, res) => this.current.handler(req, res),
      refused: (refusal, who) => this.#cut("clients", refusal, who),
    });
    for (const [i, { tls }] of config.listen.entries()) {
      if (!tls) continue;
      const { renewing } = await import("../http/tls.ts");
      renewing(listening.servers[i]!, tls, { key: "listen.tls", log: this.#services.log });
    }
    return (this.#listening = listening);
  }

  /** Undefined: gateway.yaml asks for none. `fd`: an open descriptor in place of its address. */
  async listenAdmin(api: Pick<AdminApi, "serve">, fd?: number): Promise<Listening | undefined> {
    const { admin } = this.current.config;
    if (admin) await mustHaveAdmin(admin, this.#services.store);
    return (
      admin &&
      listenAdmin(admin, {
        fd,
        log: this.#services.log,
        handler: (req, res) =>
          isApi((req.url ?? "/").split("?", 1)[0]!)
            ? void api.serve(req, res)
            : this.current.admin(req, res),
        refused: (refusal, who) => this.#cut("admin", refusal, who),
      })
    );
  }

  /** Requests of clients under way in this process. */
  get inFlight(): number {
    return this.#listening?.inflight() ?? 0;
  }

  /** Of them those that frontends have, of this generation and of those that end. */
  inFlightOf(): Readonly<Record<string, number>> {
    const sum: Record<string, number> = {};
    for (const { frontends, inFlightOf } of [this.current.built, ...this.#retired])
      // One that speaks several protocols is there once for each.
      for (const name of new Set(frontends.map((frontend) => frontend.name)))
        sum[name] = (sum[name] ?? 0) + inFlightOf(name);
    return sum;
  }

  /** By another gateway on the store: what any process of this one knows. */
  #answer(question: Buffer): Promise<Buffer | undefined> {
    const { between, peers } = this.#services;
    return answered(
      between,
      question,
      async (id, of) => (await peers.asked(id, of)) ?? peers.ask(id, of, true),
    );
  }

  /** By the listener, before a route was looked for. */
  #cut(listener: TurnedAway["listener"], { code, status }: Refusal, who: RefusedClient): void {
    const { id, address, method } = who;
    this.#turnedAway(listener, { id, status, code, method });
    this.#services.log.debug({ code, status, address, listener }, "a request was turned away");
  }

  #turnedAway(listener: TurnedAway["listener"], refusal: Parameters<Refused>[0]): void {
    this.#services.refusals.count(refusal.code);
    this.#services.observing.turnedAway({ at: wallClock(), listener, ...refusal });
  }

  /** Rows of the ledger are kept as long as the current config says. */
  retain(scope: Scope): void {
    retaining(this.#services, () => this.current.config.ledger.keepMs, scope);
  }

  async build(of: {
    number: number;
    loaded: LoadedConfig;
    config: GatewayConfig;
    probe?: boolean;
    observers?: boolean;
  }): Promise<LiveGeneration | { problems: readonly Located[] }> {
    const { loaded, config } = of;
    this.#services.log.secrets(secretsOf(config));
    const built = await build({ ...of, services: this.#services, place: loaded.place });
    if ("problems" in built) return built;
    const app = createApp({
      gen: built.gen,
      frontends: built.frontends,
      ready: () => this.#ready(),
      refused: (refusal) => this.#turnedAway("clients", refusal),
      files: this.#services.files,
      asked: (question) => this.#answer(question),
    });
    return {
      built,
      config,
      loaded,
      handler: toHandler(
        app,
        stray(built.frontends, (refusal) => this.#turnedAway("clients", refusal)),
        straight(built.gen, built.frontends),
      ),
      admin: this.#admin(built),
      at: wallClock(),
    };
  }

  /** What operators' programs ask is no request of a client: observers do not hear of it. */
  #admin({ gen, admin: frontends }: BuiltGeneration): ListenOptions["handler"] {
    const quiet: Generation = { ...gen, seen: undefined };
    const refused: Refused = (refusal) => this.#turnedAway("admin", refusal);
    const app = createApp({
      gen: quiet,
      frontends,
      ready: () => this.#ready(),
      refused,
      admin: true,
    });
    return toHandler(app, stray(frontends, refused));
  }

  swap(serving: LiveGeneration): void {
    const old = this.#current?.built;
    this.#current = serving;
    this.#services.observing.mount(serving.built.observers);
    this.#services.log.level(serving.config.log.level);
    this.#services.files.limit(serving.config.files);
    this.#services.remembered?.ring.limit(serving.config.remember);
    this.#listening?.limit(limitsOf(serving.config));
    this.#services.gate.limit(serving.config.overload);
    this.#services.room.limit(serving.config.bounds.inFlightBytes);
    if (!old) return void this.#services.crossings?.left();
    this.#retired.add(old);
    void old.retire().then(() => {
      this.#retired.delete(old);
      this.#services.log.debug({ generation: old.gen.number }, "a generation has ended");
    });
  }

  /** The current one first. */
  generations(): Status["generations"] {
    return [this.current.built, ...this.#retired].map((built) => ({
      generation: built.gen.number,
      inFlight: built.inFlight(),
    }));
  }

  /** Another process has the observers from now on. */
  async endObservers(): Promise<void> {
    const all = [...(this.#current ? [this.#current.built] : []), ...this.#retired];
    await Promise.all(all.map((built) => built.endObservers()));
  }

  /** Resolves when the last exchange of all of them is over. */
  async end(): Promise<void> {
    const all = [...(this.#current ? [this.#current.built] : []), ...this.#retired];
    await Promise.all(all.map((built) => built.retire()));
  }

  #ready(): { ready: boolean; state: string } {
    this.#asked = true;
    const { state } = this;
    return { ready: state === "ready", state };
  }
}

const limitsOf = ({ bounds, writeMs }: GatewayConfig) => ({ ...bounds, stuckMs: writeMs });
