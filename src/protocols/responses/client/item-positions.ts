// Which item is which: in events by their place, and at the end, where a list repeats them all, by their names. That list may
// hold items that were never announced, and in front of others that were.
import type { JsonObject } from "../../../model/values.ts";
import { asNumber, asObject, asText } from "../../json-values.ts";

export class ItemPositions {
  readonly #ids = new Map<string, number>();
  #next = 0;

  /** Its number is believed, for some upstreams give an item another name in each event; without one, its name. */
  positionOf(event: JsonObject): number {
    const item = asObject(event["item"]);
    const names = [asText(event["item_id"]), ...namesOf(item ?? {})];
    const at = asNumber(event["output_index"]) ?? this.#known(names) ?? (names[0] ? this.#next : 0);
    this.#next = Math.max(this.#next, at + 1);
    for (const name of names) if (name) this.#ids.set(name, at);
    return at;
  }

  /**
   * Where each item of the final list stands: at its name's place; else it is the next of its type that nothing else is;
   * else it is new.
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

/** An item's own, and that of the call it makes, which is told apart by its sign. */
function namesOf(item: JsonObject): (string | undefined)[] {
  const call = asText(item["call_id"]);
  return [asText(item["id"]), call && `call ${call}`];
}

function queue(of: Map<string, number[]>, type: string): number[] {
  let ats = of.get(type);
  if (!ats) of.set(type, (ats = []));
  return ats;
}
