// The facts of rows, made once for many of them: of the same terms, with the same end.
import { dimensionsOf, type RowDimensions } from "tollgate/store";
import type { SettledFields } from "./stored-batch.ts";
import type { CallTerms } from "./call-terms.ts";

/** Terms whose facts are remembered. */
const MAX_TERMS = 4_096;

export class DimensionCache {
  readonly #byTerms = new Map<string, RowDimensions>();

  /** `said`: the terms as text. */
  get(row: SettledFields, said: string, terms: () => CallTerms): RowDimensions {
    const id = `${row.kind} ${row.state} ${row.outcome}\n${said}`;
    let facts = this.#byTerms.get(id);
    if (!facts) {
      if (this.#byTerms.size >= MAX_TERMS) this.#byTerms.clear();
      this.#byTerms.set(id, (facts = dimensionsOf({ ...terms(), ...row })));
    }
    return facts;
  }
}
