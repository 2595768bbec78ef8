// Counts a generation's open exchanges by frontend. A retired generation ends when the count is
// zero.
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { InFlightRequests } from "../requests/in-flight-requests.ts";

export class InFlightCounter {
  count = 0;
  readonly #underWay: InFlightRequests;
  #onIdle: (() => void) | undefined;
  /** Counts by frontend name. An entry stays when its count is zero. */
  readonly #byFrontend = new Map<string, { count: number }>();

  /** @param underWay The open requests of all generations, which operators can list. */
  constructor(underWay: InFlightRequests) {
    this.#underWay = underWay;
  }

  /** Counts an exchange. Returns a function that ends the count. Calling it twice has no effect. */
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

  /** Resolves when all exchanges have ended. */
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
