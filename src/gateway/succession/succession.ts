// A gateway that is replaced while it serves: the order in which it lets go, lends what it has open, and leaves.
import { wallClock } from "../../lib/wall-clock.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import { fail, sayable } from "../../model/error.ts";
import { forwarding } from "../observers/forwarding.ts";
import type { Audience } from "../observers/audience.ts";
import type { GenerationSlot, LiveGeneration } from "../generation/slot.ts";
import type { Listening } from "../http/listener.ts";
import type { Office } from "../office.ts";
import type { Status } from "../types.ts";
import type { GatewayOptions } from "../options.ts";
import { followHealth } from "../services/health.ts";
import type { HeldStore } from "../services/held-store.ts";
import type { Services } from "../services/services.ts";
import { noteBetween, overBetween } from "../control/between.ts";
import { borrowed } from "../workers/lent-store.ts";
import type { Link } from "../workers/link.ts";
import type { WorkerPool } from "../workers/pool.ts";
import type { Changes } from "../changes.ts";
import type { Descriptors } from "./descriptors.ts";
import { mustBeReplaceable, openSockets } from "./letting-go.ts";
import type { Estate, SuccessorAsks } from "./said.ts";
import { startSuccessor, type Successor } from "./successor.ts";

/** A gateway that may be replaced. */
export interface Replaceable {
  readonly options: GatewayOptions;
  readonly services: Services;
  readonly stage: GenerationSlot;
  readonly changes: Changes;
  readonly held: HeldStore;
  readonly noted: Descriptors;
  readonly sockets: readonly string[];
  readonly door: () => Pick<Listening, "servers" | "inflight"> | WorkerPool;
  readonly office: Office;
  /** A generation with observers, in place of those that have ended. */
  renew(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<LiveGeneration | { problems: readonly Located[] }>;
}

export class Succession {
  readonly #of: Replaceable;
  #successor: Successor | undefined;
  #under: Promise<number> | undefined;
  #to: Link | undefined;
  readonly #link: Pick<Link, "tell"> = {
    tell: (name, ...args) => this.#to?.tell(name, ...args),
  };
  /** The last one that came to nothing. */
  last: Status["lastUpgrade"];

  constructor(of: Replaceable) {
    this.#of = of;
  }

  /** `leave` begins when another process serves; that one's number. One at a time. */
  upgrade(may: () => boolean, leave: () => void): Promise<number> {
    return (this.#under ??= this.#upgrade(may, leave));
  }

  async #upgrade(may: () => boolean, leave: () => void): Promise<number> {
    try {
      if (!may()) fail("unavailable", "This gateway is about to stop.", { code: "stopping" });
      const { pid } = await this.#begin();
      leave();
      return pid;
    } catch (error) {
      this.#under = undefined;
      this.last = { ok: false, at: wallClock(), why: sayable(error) };
      throw error;
    }
  }

  /** Resolves when another process serves, and this one is its guest. */
  async #begin(): Promise<Successor> {
    const { options, services, stage, door, office, noted, changes } = this.#of;
    await mustBeReplaceable(options, { config: stage.current.config, store: services.store });
    services.log.info({}, "another process takes over: it is started with what is installed now");
    this.#successor = await startSuccessor({
      sockets: openSockets(door(), office.admin, noted),
      log: services.log,
      answers: {
        busy: () => door().inflight(),
        forget: () => void changes.forget(),
        account: (record) => void changes.account(record),
        accounts: () => changes.accounts(),
        wake: (provider, credential) => services.rests.wake(provider, credential),
        health: (trouble) => followHealth(services, trouble),
      },
      letGo: (wanted) => this.#letGo(wanted),
      takeBack: () => this.#takeBack(),
      lend: (link) => this.#lend(link),
    });
    return this.#successor;
  }

  /** Nothing is left of this one. */
  over(): void {
    this.#successor?.link.tell("over");
  }

  async #letGo({ stateDir }: Parameters<SuccessorAsks["take"]>[0]): Promise<Estate> {
    const { services, stage, held, sockets, office } = this.#of;
    if (stateDir !== services.stateDir)
      fail(
        "conflict",
        `It would keep its state in ${stateDir}, and this one has ${services.stateDir}.`,
      );
    const shared = services.store.lease !== undefined;
    await noteBetween(stateDir);
    await office.close();
    await stage.endObservers();
    await services.remembered?.cede();
    // Until there is a link: what is told goes nowhere, or comes again with a generation of this process.
    (services.observing as Audience).sendTo(forwarding(() => this.#link));
    const since = Math.min(wallClock(), ...services.underWay.list().map(({ at }) => at));
    if (!shared) await held.close();
    return { instance: shared ? undefined : services.instance, since, sockets };
  }

  async #takeBack(): Promise<void> {
    const { services, stage, held, office, renew } = this.#of;
    // It is there already, unless the one that failed has begun to answer; a full disk must not keep this one from going on.
    await noteBetween(services.stateDir).catch(() => {});
    if (services.store.lease === undefined) await held.openAgain();
    (services.observing as Audience).sendTo(undefined);
    services.remembered?.keep();
    await office.open();
    await overBetween(services.stateDir);
    office.keep();
    const { loaded, config } = stage.current;
    const made = await renew(loaded, config);
    if ("problems" in made)
      services.log.error({ problems: made.problems }, "observers could not be set up anew");
    services.log.warn({}, "nothing has taken over; this gateway goes on as before");
  }

  #lend(link: Link): void {
    this.#to = link;
    const { services, held } = this.#of;
    if (services.store.lease === undefined) held.standsIn(borrowed(link));
  }
}
