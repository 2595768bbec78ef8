// The exchanges that a generation has under way, by what serves them. A retired one ends when there are none.
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { InFlightRequests } from "../requests/in-flight-requests.ts";

export class InFlightCounter {
  count = 0;
  readonly #underWay: InFlightRequests;
  #onIdle: (() => void) | undefined;
  /** By the name of a frontend: they stay, whether or not something is under way. */
  readonly #byFrontend = new Map<string, { count: number }>();

  /** `underWay`: those of all generations, for operators to see. */
  constructor(underWay: InFlightRequests) {
    this.#underWay = underWay;
  }

  /** Counts an exchange. The function that it returns ends the count; calling it twice changes nothing. */
  enter(x: HostExchange): () => void {
    const of = this.#entryOf(x.frontend);
    const place = this.#underWay.add(x);
    this.count++;
    of.count++;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#underWay.remove(place);
      of.count--;
      if (--this.count === 0) this.#onIdle?.();
    };
  }

  countOf(frontend: string): number {
    return this.#byFrontend.get(frontend)?.count ?? 0;
  }

  /** When all of them are over. */
  async whenIdle(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #entryOf(frontend: string): { count: number } {
    const known = this.#byFrontend.get(frontend);
    if (known) return known;
    const made = { count: 0 };
    this.#byFrontend.set(frontend, made);
    return made;
  }
}
