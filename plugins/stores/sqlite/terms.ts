// What calls have in common: whose they are, where they go, at what price. A commit says it once for all its rows, and so
// does the way between the threads: there it has a number, given when it is said for the first time.
import type { Reserve } from "tollgate/plugin";

export type Common = Pick<
  Reserve,
  "key" | "target" | "privacy" | "labels" | "account" | "price" | "asked"
>;

/** Without an account, nothing is said of one. */
export const textOf = ({ key, target, privacy, labels, price, asked, account }: Common): string =>
  JSON.stringify([
    key,
    target.provider,
    target.model,
    target.protocol,
    target.credential,
    privacy,
    labels,
    price,
    asked,
    ...(account === undefined ? [] : [account]),
  ]);

export type Listed = readonly [
  key: string,
  provider: string,
  model: string,
  protocol: string | null,
  credential: string,
  privacy: Reserve["privacy"],
  labels: Reserve["labels"],
  price: string | null,
  asked: NonNullable<Reserve["asked"]> | null,
  account?: string,
];

export const common = ([
  key,
  provider,
  model,
  protocol,
  credential,
  privacy,
  labels,
  price,
  asked,
  account,
]: Listed): Common => ({
  key,
  target: { provider, model, protocol, credential },
  privacy,
  labels,
  account,
  price,
  asked: asked ?? undefined,
});

/** Numbers in use at a time, and for one key; labels may hold anything. */
const MOST = 4_096;
const MOST_OF_KEY = 16;

export interface Numbering {
  number(of: Common): number;
  /** What the other side has to learn before it is told these numbers: each once, in order. */
  news(): { forget: boolean; texts: readonly string[] };
}

/** Known by their fields: no text is made for what was said before. */
export function createNumbering(): Numbering {
  const known = new Map<string, { of: Common; number: number }[]>();
  let texts: string[] = [];
  let next = 0;
  let forget = false;

  function learn(of: Common, mine: { of: Common; number: number }[]): number {
    const { key, target, privacy, labels, account, price, asked } = of;
    // A copy: what is changed outside is another one.
    const copy: Common = {
      key,
      target: { ...target },
      privacy,
      labels: { ...labels },
      account,
      price,
      asked: asked && { ...asked },
    };
    texts.push(textOf(copy));
    if (mine.unshift({ of: copy, number: next }) > MOST_OF_KEY) mine.pop();
    return next++;
  }

  return {
    number(of) {
      let mine = known.get(of.key);
      if (!mine) known.set(of.key, (mine = []));
      for (const one of mine) if (same(one.of, of)) return one.number;
      return learn(of, mine);
    },
    news() {
      const said = { forget, texts };
      texts = [];
      forget = next > MOST;
      if (forget) {
        known.clear();
        next = 0;
      }
      return said;
    },
  };
}

const same = (a: Common, b: Common): boolean =>
  a.target.model === b.target.model &&
  a.target.provider === b.target.provider &&
  a.target.credential === b.target.credential &&
  a.target.protocol === b.target.protocol &&
  a.privacy === b.privacy &&
  a.price === b.price &&
  a.account === b.account &&
  alike(a.asked, b.asked) &&
  alike(a.labels, b.labels);

type Flat = { readonly [name: string]: unknown };

function alike(a: object | undefined, b: object | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  for (const name in a) if ((a as Flat)[name] !== (b as Flat)[name]) return false;
  for (const name in b)
    if ((b as Flat)[name] !== undefined && !Object.hasOwn(a, name)) return false;
  return true;
}
