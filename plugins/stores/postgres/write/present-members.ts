// Meters of members that are present in their groups, because this node used them recently. A batch
// with only such members takes the fast path, because it adds no member to a group.
import { isMemberMeter } from "../rows/batch-plan.ts";

/**
 * How long a member counts as present, in milliseconds. A member stays in its group for at least an
 * hour after its last call, and its meters are not removed before.
 */
const PRESENT_MS = 600_000;
/** Maximum number of meters. */
const MAX_METERS = 100_000;

export class PresentMembers {
  readonly #usedAt = new Map<string, number>();

  isPresent(id: string, now = performance.now()): boolean {
    const at = this.#usedAt.get(id);
    return at !== undefined && now - at < PRESENT_MS;
  }

  /** Called after a call was written that took from these meters. */
  record(amounts: Iterable<readonly [id: string, take: bigint]>, now = performance.now()): void {
    for (const [id] of amounts) {
      if (!isMemberMeter(id)) continue;
      if (this.#usedAt.size >= MAX_METERS) this.#usedAt.clear();
      this.#usedAt.set(id, now);
    }
  }

  /** Called when the database may have been restored to an earlier state. */
  clear(): void {
    this.#usedAt.clear();
  }
}
