// Identifies output items. Events identify them by position. The final list repeats all items and
// identifies them by name. That list can contain items that were never announced, even before items
// that were.
import type { JsonObject } from "../../../model/values.ts";
import { asNumber, asObject, asText } from "../../json-values.ts";

export class ItemPositions {
  readonly #ids = new Map<string, number>();
  #next = 0;

  /**
   * Returns the position of an event's item. `output_index` takes precedence, because some
   * providers give an item a different name in each event. Without it, the name is used.
   */
  positionOf(event: JsonObject): number {
    const item = asObject(event["item"]);
    const names = [asText(event["item_id"]), ...namesOf(item ?? {})];
    const at = asNumber(event["output_index"]) ?? this.#known(names) ?? (names[0] ? this.#next : 0);
    this.#next = Math.max(this.#next, at + 1);
    for (const name of names) if (name) this.#ids.set(name, at);
    return at;
  }

  /**
   * Returns the position of each item in the final list. An item with a known name has that name's
   * position. Otherwise it is the next unclaimed item of its type. If there is none, it is new.
   */
  positionsOf(
    items: readonly JsonObject[],
    slots: ReadonlyMap<number, { readonly type: string }>,
  ): number[] {
    const named = items.map((item) => this.#known(namesOf(item)));
    const taken = new Set(named);
    const left = new Map<string, number[]>();
    for (const [at, { type }] of slots) if (!taken.has(at)) queue(left, type).push(at);
    for (const ats of left.values()) ats.reverse();
    return items.map(
      (item, i) => named[i] ?? queue(left, asText(item["type"]) ?? "").pop() ?? this.#next++,
    );
  }

  #known(names: readonly (string | undefined)[]): number | undefined {
    for (const name of names) {
      const at = name ? this.#ids.get(name) : undefined;
      if (at !== undefined) return at;
    }
    return undefined;
  }
}

/**
 * Returns the names of an item: its own ID and the ID of the call it makes, which has a prefix to
 * keep them distinct.
 */
function namesOf(item: JsonObject): (string | undefined)[] {
  const call = asText(item["call_id"]);
  return [asText(item["id"]), call && `call ${call}`];
}

function queue(of: Map<string, number[]>, type: string): number[] {
  let ats = of.get(type);
  if (!ats) of.set(type, (ats = []));
  return ats;
}
