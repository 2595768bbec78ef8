// Caches the dimensions of rows. Rows with the same terms, kind, state, and outcome share one
// object.
import {
  dimensionsOf,
  type RowDimensions,
  type SettledFields,
  type CallTerms,
} from "tollgate/store";

/** Maximum number of cached entries. */
const MAX_TERMS = 4_096;

export class DimensionCache {
  readonly #byTerms = new Map<string, RowDimensions>();

  /**
   * Returns the dimensions of a row.
   * @param termsText The terms as text.
   */
  get(row: SettledFields, termsText: string, terms: () => CallTerms): RowDimensions {
    const id = `${row.kind} ${row.state} ${row.outcome}\n${termsText}`;
    let facts = this.#byTerms.get(id);
    if (!facts) {
      if (this.#byTerms.size >= MAX_TERMS) this.#byTerms.clear();
      this.#byTerms.set(id, (facts = dimensionsOf({ ...terms(), ...row })));
    }
    return facts;
  }
}
