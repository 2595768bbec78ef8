// The facts of rows, made once for many of them: of the same terms, with the same end.
import { factsOf, type RowFacts } from "tollgate/store";
import type { Counted } from "./stored.ts";
import type { Common } from "./terms.ts";

/** Terms whose facts are remembered. */
const MOST = 4_096;

export class KnownFacts {
  readonly #known = new Map<string, RowFacts>();

  /** `said`: the terms as text. */
  of(row: Counted, said: string, terms: () => Common): RowFacts {
    const id = `${row.kind} ${row.state} ${row.outcome}\n${said}`;
    let facts = this.#known.get(id);
    if (!facts) {
      if (this.#known.size >= MOST) this.#known.clear();
      this.#known.set(id, (facts = factsOf({ ...terms(), ...row })));
    }
    return facts;
  }
}
