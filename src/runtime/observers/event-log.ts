// Logs gateway events once for all processes, although each process detects them independently.
import type { Log } from "../../lib/log/log.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";

/**
 * Maximum number of stored cooldowns. A provider has tens of models. If there are more, the oldest
 * entry is dropped, and its cooldown is logged again.
 */
const MAX_COOLDOWNS = 10_000;

type CooldownStarted = Extract<GatewayEvent, { type: "cooldown_started" }>;
type CooldownEnded = Extract<GatewayEvent, { type: "cooldown_ended" }>;
type HookQuarantined = Extract<GatewayEvent, { type: "quarantined" }>;
type HookReleased = Extract<GatewayEvent, { type: "released" }>;

export class EventLog {
  readonly #logger: Log;
  /** Start times of quarantined plugin hooks. */
  readonly #quarantinedSince = new Map<string, number>();
  /** Start times of cooldowns. */
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

  /** Logs the start of a cooldown. Each further failure extends the cooldown and is not logged. */
  #cooldownStarted({ provider, credential, model, reason, until, at }: CooldownStarted): void {
    const key = keyOf({ provider, credential, model });
    if (this.#cooldownsSince.has(key)) return;
    if (this.#cooldownsSince.size >= MAX_COOLDOWNS)
      this.#cooldownsSince.delete(this.#cooldownsSince.keys().next().value!);
    this.#cooldownsSince.set(key, at);
    const fields = { provider, credential, model: model ?? undefined, reason };
    this.#logger.warn({ ...fields, until: new Date(until).toISOString() }, "provider unavailable");
  }

  /** Logs the quarantine of a hook. With several processes, each process reports it. */
  #hookQuarantined({ plugin, hook, reason, until, failures, at }: HookQuarantined): void {
    const key = `${plugin} ${hook}`;
    if (this.#quarantinedSince.has(key)) return;
    if (this.#quarantinedSince.size >= MAX_COOLDOWNS)
      this.#quarantinedSince.delete(this.#quarantinedSince.keys().next().value!);
    this.#quarantinedSince.set(key, at);
    this.#logger.error(
      { plugin, hook, reason, failures, until: new Date(until).toISOString() },
      "plugin hook disabled after repeated failures",
    );
  }

  #hookReleased({ plugin, hook, at }: HookReleased): void {
    const key = `${plugin} ${hook}`;
    const since = this.#quarantinedSince.get(key);
    if (since === undefined) return;
    this.#quarantinedSince.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    this.#logger.info({ plugin, hook, seconds }, "plugin hook recovered");
  }

  #cooldownEnded({ provider, credential, model, at }: CooldownEnded): void {
    const key = keyOf({ provider, credential, model });
    const since = this.#cooldownsSince.get(key);
    if (since === undefined) return;
    this.#cooldownsSince.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    const fields = { provider, credential, model: model ?? undefined };
    this.#logger.info({ ...fields, seconds }, "provider recovered");
  }
}

const keyOf = ({
  provider,
  credential,
  model,
}: Pick<CooldownEnded, "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);
