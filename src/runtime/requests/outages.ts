// Records the times when providers were in cooldown: from the first failure to the first response
// after the cooldown. Only the newest outages are kept. Outages are kept across restarts, because
// operators often look at them hours later.
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { ErrorKind } from "../../model/error.ts";

/** One cooldown of a provider's credential. Times are Unix milliseconds. */
export interface Outage {
  readonly provider: string;
  readonly credential: string;
  /** Null: all models of the provider. */
  readonly model: string | null;
  /** Error kind of the first failure. */
  readonly errorKind: ErrorKind;
  readonly startedAt: number;
  /** When the cooldown ends or ended. Each failure during the cooldown extends it. */
  readonly cooldownEndsAt: number;
  /** Time of the first response after the cooldown. Unset if there was no response yet. */
  readonly recoveredAt?: number;
}

type Target = Pick<Outage, "provider" | "credential" | "model">;

const MAX_OUTAGES = 500;
/** Maximum number of outages in one result, per provider. */
const MAX_SHOWN = 20;

const isSameTarget = (a: Target, b: Target): boolean =>
  a.provider === b.provider && a.credential === b.credential && a.model === b.model;

export class Outages {
  /** All outages, oldest first. */
  #all: Outage[] = [];
  #changes = 0;

  /** Version number, which increases with every change. */
  get version(): number {
    return this.#changes;
  }

  /**
   * Records a cooldown event. With several workers, each worker reports the start and the end of a
   * cooldown. Only the first report of each counts.
   */
  onEvent(event: GatewayEvent): void {
    if (event.type === "cooldown_started") {
      const { provider, credential, model, reason, until, at } = event;
      const open = this.#findOpen(event);
      const outage = {
        provider,
        credential,
        model,
        errorKind: open?.errorKind ?? reason,
        cooldownEndsAt: until,
      };
      this.#replace(open, { ...outage, startedAt: open?.startedAt ?? at });
    } else if (event.type === "cooldown_ended") {
      const open = this.#findOpen(event);
      if (open) this.#replace(open, { ...open, recoveredAt: event.at });
    }
  }

  /** Returns the outages of a provider, newest first. */
  listOf(provider: string): readonly Outage[] {
    return this.#all
      .filter((each) => each.provider === provider)
      .toReversed()
      .slice(0, MAX_SHOWN);
  }

  serialize(): Buffer {
    return Buffer.from(JSON.stringify(this.#all));
  }

  /** Restores serialized outages. Throws if the bytes are invalid. */
  restore(bytes: Buffer): void {
    const all = JSON.parse(bytes.toString()) as unknown;
    if (!Array.isArray(all) || !all.every(isOutage))
      throw new TypeError("Invalid list of outages.");
    this.#all = all.slice(-MAX_OUTAGES);
  }

  #findOpen(of: Target): Outage | undefined {
    return this.#all.findLast((each) => isSameTarget(each, of) && each.recoveredAt === undefined);
  }

  #replace(before: Outage | undefined, after: Outage): void {
    this.#changes++;
    if (before) this.#all[this.#all.indexOf(before)] = after;
    else this.#all.push(after);
    if (this.#all.length > MAX_OUTAGES) this.#all.shift();
  }
}

const isOutage = (value: unknown): value is Outage => {
  const { provider, credential, model, errorKind, startedAt, cooldownEndsAt, recoveredAt } =
    (value ?? {}) as Outage;
  return (
    [provider, credential, errorKind].every((each) => typeof each === "string") &&
    (model === null || typeof model === "string") &&
    [startedAt, cooldownEndsAt, recoveredAt ?? 0].every((each) => Number.isFinite(each))
  );
};
