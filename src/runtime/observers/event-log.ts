// What the gateway tells of itself, for the log: once for all processes, though each finds it out by itself.
import type { Log } from "../../lib/log/log.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";

/** A provider has tens of models; a list that is longer is forgotten from its beginning, and then told once more. */
const MAX_COOLDOWNS = 10_000;

type CooldownStarted = Extract<GatewayEvent, { type: "cooldown_started" }>;
type CooldownEnded = Extract<GatewayEvent, { type: "cooldown_ended" }>;
type HookQuarantined = Extract<GatewayEvent, { type: "quarantined" }>;
type HookReleased = Extract<GatewayEvent, { type: "released" }>;

export class EventLog {
  readonly #logger: Log;
  /** Hooks of plugins that are not asked, since when. */
  readonly #quarantinedSince = new Map<string, number>();
  /** What rests, since when. */
  readonly #cooldownsSince = new Map<string, number>();

  constructor(log: Log) {
    this.#logger = log;
  }

  log(event: GatewayEvent): void {
    if (event.type === "cooldown_started") this.#cooldownStarted(event);
    else if (event.type === "cooldown_ended") this.#cooldownEnded(event);
    else if (event.type === "quarantined") this.#hookQuarantined(event);
    else if (event.type === "released") this.#hookReleased(event);
  }

  /** Every failure while it rests makes the rest longer, and is no news. */
  #cooldownStarted({ provider, credential, model, reason, until, at }: CooldownStarted): void {
    const key = keyOf({ provider, credential, model });
    if (this.#cooldownsSince.has(key)) return;
    if (this.#cooldownsSince.size >= MAX_COOLDOWNS)
      this.#cooldownsSince.delete(this.#cooldownsSince.keys().next().value!);
    this.#cooldownsSince.set(key, at);
    const fields = { provider, credential, model: model ?? undefined, kind: reason };
    this.#logger.warn(
      { ...fields, until: new Date(until).toISOString() },
      "a provider has failed; until it answers again it is tried last",
    );
  }

  /** With several processes each of them finds out by itself. */
  #hookQuarantined({ plugin, hook, reason, until, failures, at }: HookQuarantined): void {
    const key = `${plugin} ${hook}`;
    if (this.#quarantinedSince.has(key)) return;
    if (this.#quarantinedSince.size >= MAX_COOLDOWNS)
      this.#quarantinedSince.delete(this.#quarantinedSince.keys().next().value!);
    this.#quarantinedSince.set(key, at);
    this.#logger.error(
      { plugin, hook, why: reason, failures, until: new Date(until).toISOString() },
      "a plugin has failed again and again; it is not asked for a while",
    );
  }

  #hookReleased({ plugin, hook, at }: HookReleased): void {
    const key = `${plugin} ${hook}`;
    const since = this.#quarantinedSince.get(key);
    if (since === undefined) return;
    this.#quarantinedSince.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    this.#logger.info({ plugin, hook, seconds }, "a plugin does its work again");
  }

  #cooldownEnded({ provider, credential, model, at }: CooldownEnded): void {
    const key = keyOf({ provider, credential, model });
    const since = this.#cooldownsSince.get(key);
    if (since === undefined) return;
    this.#cooldownsSince.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    const fields = { provider, credential, model: model ?? undefined };
    this.#logger.info({ ...fields, seconds }, "a provider answers again");
  }
}

const keyOf = ({
  provider,
  credential,
  model,
}: Pick<CooldownEnded, "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);
