// What a call may cost, before it is sent: the estimate of its input and the hold on its budget.
//
//   hard      the worst case: dearest input unit, every output token up to the cap that the host sets.
//             A budget cannot be overrun by an upstream that keeps to the cap.
//   expected  input as estimated, output as this key and model usually write, at least 1,024 tokens.
//             Overrun is at most concurrency × (cap − usual).
//   soft      takes one nano-dollar: a spent budget refuses, nothing else does.
//
// `claim` is what budgets take. `nano` is the row's hold, the worst case whatever the mode: a crash of which nothing is
// known is presumed to have cost that, because an estimate below the bill would be a lost bill.
import type { Price } from "../model/facts.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { Opt } from "../model/values.ts";
import { cost, dearest, type Circumstances } from "./price.ts";

export interface Ask extends Circumstances {
  mode: "hard" | "expected" | "soft";
  /** null: unpriced. */
  price: Price | null;
  /** Tokens, from `inputUpTo`. */
  input: number;
  /** What the input can be at most, where it holds what nobody can count beforehand. */
  inputMost?: Opt<number>;
  /** The client's own cap on one answer. */
  output?: Opt<number>;
  /** The model's cap. */
  limit?: Opt<number>;
  /** What this key and model usually write: a p95. */
  usual?: Opt<number>;
  /** Answers, or images. */
  n?: Opt<number>;
  /** Pictures or sound may go in or come out: the worst case counts them. */
  media?: Opt<boolean>;
  kind?: Opt<"chat" | "image">;
}

export interface Hold {
  nano: bigint | null;
  claim: bigint | null;
  /** Output tokens of one answer that the claim pays for; under `hard` the cap to set upstream. */
  output: number | undefined;
  /** Output tokens that all its answers can have. */
  most: number;
}

const LEAST_OUTPUT = 1_024;
/** Where neither client nor model says: what no answer of today exceeds. */
const MOST_OUTPUT = 131_072;
/** A high-quality 1536 × 1024 picture is about 6,200 tokens with the vendors that bill pictures so. */
const TOKENS_A_PICTURE = 8_192;
const TOKENS_A_MEDIUM = 1_600;
const MOST_MEGAPIXELS = 4;

const READ = [
  "input",
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const;
const WRITTEN = ["output", "reasoning"] as const;

/**
 * An upper bound for text: three bytes a token, no tokenizer asked (English has four, CJK three, code about three).
 * Media are counted by the piece, their bytes left out. Never more than the model can read.
 */
export function inputUpTo(of: {
  bytes: number;
  media?: Opt<{ count: number; bytes: number }>;
  context?: Opt<number>;
}): number {
  const text = Math.ceil(Math.max(0, of.bytes - (of.media?.bytes ?? 0)) / 3);
  const tokens = text + (of.media?.count ?? 0) * TOKENS_A_MEDIUM;
  return Math.min(tokens, of.context ?? tokens);
}

export function hold(ask: Ask): Hold {
  const output = ask.kind === "image" ? undefined : outputHeld(ask);
  const most = ask.kind === "image" ? 0 : capOf(ask);
  const worst = ask.price && worth({ ...ask, mode: "hard" }, ask.price, most);
  const claim = ask.price && ask.mode === "expected" ? worth(ask, ask.price, output ?? 0) : worst;
  return {
    nano: claim === null ? null : worst,
    claim: claim !== null && ask.mode === "soft" ? 1n : claim,
    output,
    most: most * (ask.n ?? 1),
  };
}

/** The largest cap whose hold a budget still has room for; 0: none. What a refusal recommends. */
export function outputThatFits(left: bigint, ask: Ask): number {
  if (!ask.price || ask.kind === "image") return 0;
  const fits = (output: number): boolean => {
    const nano = hold({ ...ask, output }).claim;
    return nano !== null && nano <= left;
  };
  let low = 0;
  let high = outputHeld(ask) + 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

const capOf = ({ output, limit }: Ask): number =>
  Math.min(output ?? limit ?? MOST_OUTPUT, limit ?? Infinity);

function outputHeld(ask: Ask): number {
  const cap = capOf(ask);
  return ask.mode === "hard" ? cap : Math.min(cap, Math.max(LEAST_OUTPUT, ask.usual ?? 0));
}

function worth(ask: Ask, price: Price, output: number): bigint | null {
  const round = { ...ask, round: "ceil" } as const;
  const n = ask.n ?? 1;
  if (ask.kind === "image") return pictures(ask, price, n);
  const all = output * n;
  if (ask.mode !== "hard") return cost({ input: ask.input, output: all }, price, round);
  const read: readonly Unit[] = ask.media ? [...READ, "audio_in", "image_in"] : READ;
  const written: readonly Unit[] = ask.media ? [...WRITTEN, "audio_out", "image_out"] : WRITTEN;
  const input = Math.max(ask.input, ask.inputMost ?? 0);
  const into = dearest(price, read, input, ask) ?? "input";
  const out = dearest(price, written, input, ask) ?? "output";
  const answer: Usage = out === "reasoning" ? { output: all, reasoning: all } : { [out]: all };
  return cost({ [into]: input, ...answer }, price, round);
}

/** By whichever measure the price lists: pieces, megapixels, or tokens. What upstream chooses is taken to be the dearest. */
function pictures(ask: Ask, price: Price, n: number): bigint | null {
  const [wide, high] = (ask.size ?? "").split("x").map(Number);
  const pixels = wide && high ? Math.ceil((wide * high) / 1e6) : MOST_MEGAPIXELS;
  const round = { ...ask, round: "ceil" } as const;
  const measures: readonly Usage[] = [
    { images: n },
    { images: n, megapixels: n * pixels },
    { input: ask.input, image_out: n * TOKENS_A_PICTURE },
    { input: ask.input, output: n * TOKENS_A_PICTURE },
  ];
  const known = ask.size !== undefined && ask.quality !== undefined;
  const any = { ...round, dearest: true, size: undefined, quality: undefined };
  for (const usage of measures) {
    const nano =
      (known ? cost(usage, price, round) : null) ??
      cost(usage, price, { ...round, dearest: true }) ??
      cost(usage, price, any);
    if (nano !== null) return nano;
  }
  return null;
}
