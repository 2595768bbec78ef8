// The exchanges that a generation has under way, by what serves them. A retired one ends when there are none.
import type { HostExchange } from "../../walk/exchange.ts";
import type { UnderWay } from "../requests/under-way.ts";

export class InFlight {
  count = 0;
  readonly #underWay: UnderWay;
  #last: (() => void) | undefined;
  /** By the name of a frontend: they stay, whether or not something is under way. */
  readonly #of = new Map<string, { count: number }>();

  /** `underWay`: those of all generations, for operators to see. */
  constructor(underWay: UnderWay) {
    this.#underWay = underWay;
  }

  /** Counts an exchange. The function that it returns ends the count; calling it twice changes nothing. */
  enter(x: HostExchange): () => void {
    const of = this.#at(x.frontend);
    const place = this.#underWay.enter(x);
    this.count++;
    of.count++;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#underWay.leave(place);
      of.count--;
      if (--this.count === 0) this.#last?.();
    };
  }

  of(frontend: string): number {
    return this.#of.get(frontend)?.count ?? 0;
  }

  /** When all of them are over. */
  async over(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => (this.#last = resolve));
  }

  #at(frontend: string): { count: number } {
    const known = this.#of.get(frontend);
    if (known) return known;
    const made = { count: 0 };
    this.#of.set(frontend, made);
    return made;
  }
}
