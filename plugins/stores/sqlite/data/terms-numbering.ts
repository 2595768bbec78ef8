// Numbers call terms. Messages between threads send equal terms once and refer to them by number.
import { serializeTerms, type CallTerms } from "tollgate/store";

/**
 * Maximum count of terms with a number, and the maximum per key. Labels can have arbitrary values,
 * so both are bounded.
 */
const MAX_NUMBERS = 4_096;
const MAX_NUMBERS_PER_KEY = 16;

export interface TermsNumbering {
  numberOf(of: CallTerms): number;
  /**
   * Returns the texts that the other thread needs before it receives these numbers. Each text is
   * returned once, in order.
   */
  takeNewTexts(): { forget: boolean; texts: readonly string[] };
}

/**
 * Creates a numbering that finds known terms by comparing fields, so that no text is built for
 * them.
 */
export function createTermsNumbering(): TermsNumbering {
  const known = new Map<string, { of: CallTerms; number: number }[]>();
  let texts: string[] = [];
  let next = 0;
  let forget = false;

  function learn(of: CallTerms, mine: { of: CallTerms; number: number }[]): number {
    const { key, target, privacy, labels, account, price, clientRequest } = of;
    // A copy, because the caller may change the object later.
    const copy: CallTerms = {
      key,
      target: { ...target },
      privacy,
      labels: { ...labels },
      account,
      price,
      clientRequest: clientRequest && { ...clientRequest },
    };
    texts.push(serializeTerms(copy));
    if (mine.unshift({ of: copy, number: next }) > MAX_NUMBERS_PER_KEY) mine.pop();
    return next++;
  }

  return {
    numberOf(of) {
      let mine = known.get(of.key);
      if (!mine) known.set(of.key, (mine = []));
      for (const one of mine) if (isSameTerms(one.of, of)) return one.number;
      return learn(of, mine);
    },
    takeNewTexts() {
      const said = { forget, texts };
      texts = [];
      forget = next > MAX_NUMBERS;
      if (forget) {
        known.clear();
        next = 0;
      }
      return said;
    },
  };
}

const isSameTerms = (a: CallTerms, b: CallTerms): boolean =>
  a.target.model === b.target.model &&
  a.target.provider === b.target.provider &&
  a.target.credential === b.target.credential &&
  a.target.protocol === b.target.protocol &&
  a.privacy === b.privacy &&
  a.price === b.price &&
  a.account === b.account &&
  isShallowEqual(a.clientRequest, b.clientRequest) &&
  isShallowEqual(a.labels, b.labels);

type FlatObject = { readonly [name: string]: unknown };

function isShallowEqual(a: object | undefined, b: object | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  for (const name in a) if ((a as FlatObject)[name] !== (b as FlatObject)[name]) return false;
  for (const name in b)
    if ((b as FlatObject)[name] !== undefined && !Object.hasOwn(a, name)) return false;
  return true;
}
