// What a plain request costs: a figure that people can compare, with the lines of its bill.
import type { Price } from "../model/facts.ts";
import type { Kind } from "../model/request.ts";
import type { Unit, Usage } from "../model/usage.ts";
import { halfEven } from "./decimal.ts";
import { charges, cost } from "./price.ts";

export interface Example {
  /** In words: "10,000 tokens in, 1,000 out". */
  readonly about: string;
  readonly usage: Usage;
  /** null: the price is not known. */
  readonly nano: bigint | null;
  readonly lines: readonly { readonly unit: Unit; readonly count: number; readonly nano: bigint }[];
}

interface Plain {
  readonly about: string;
  readonly usage: Usage;
}

/** Of each kind, by every measure in use; the first that a price covers is the example. */
const PLAIN: { readonly [kind in Kind]: readonly [Plain, ...Plain[]] } = {
  chat: [{ about: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } }],
  image: [
    { about: "one image", usage: { images: 1 } },
    { about: "one image of 1024x1024", usage: { images: 1, megapixels: 1.048576 } },
    // About as many as a square of middling quality has.
    { about: "100 tokens in, 1,000 of image out", usage: { input: 100, image_out: 1_000 } },
    { about: "100 tokens in, 1,000 out", usage: { input: 100, output: 1_000 } },
  ],
};

/** `at`: the moment whose price it is, in Unix milliseconds. */
export function example(kind: Kind, price: Price | undefined, at: number): Example {
  const [first, ...others] = PLAIN[kind];
  for (const { about, usage } of price ? [first, ...others] : []) {
    const nano = cost(usage, price!, { at });
    if (nano === null) continue;
    const lines = charges(usage, price!, { at })!.map(({ unit, count, nano }) => ({
      unit,
      count,
      nano: halfEven(nano),
    }));
    return { about, usage, nano, lines };
  }
  return { ...first, nano: null, lines: [] };
}
