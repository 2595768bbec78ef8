// A model API that keeps its own bill, to the token: what was whole is billed whole, what was cut is billed as far as it
// had been made. Every answer is known by the words that its request brought.
import {
  json,
  say,
  spokenAt,
  upstream,
  type Answer,
  type Asked,
  type Piece,
  type Upstream,
} from "tollgate/testing";
import type { Usage } from "tollgate/plugin";

/** Nano-dollars a token, as gateway.yaml has them below. */
const RATES = { input: 3_000n, cache_read: 300n, output: 15_000n } as const;
export const PICTURE = 40_000_000n;

/** The part of gateway.yaml under a provider. */
export const PRICED = `models: { model: { price: { input: 3, cache_read: 0.3, output: 15 }, limits: { context: 200000, output: 4096 } } }`;
export const DRAWN = `models: { draw: { kind: image, price: { images: 0.04 } } }`;

export const priced = (usage: Usage): bigint =>
  BigInt(usage.input ?? 0) * RATES.input +
  BigInt(usage.cache_read ?? 0) * RATES.cache_read +
  BigInt(usage.output ?? 0) * RATES.output +
  BigInt(usage.images ?? 0) * PICTURE;

/** What a request asks of the upstream, in its own words: `tag=3.7 words=40 gap=2`. */
export interface Wish {
  readonly tag: string;
  readonly words: number;
  readonly gap: number;
  /** Which paths refuse it, so that another provider answers. */
  readonly bad: string;
}

export const wished = ({ tag, words, gap, bad }: Wish): string =>
  `tag=${tag} words=${words} gap=${gap} bad=${bad || "-"}`;

export interface Charged {
  readonly tag: string;
  /** The first part of the path: which provider was asked. */
  readonly of: string;
  readonly asked: Asked;
  usage(): Usage;
}

export interface Biller extends AsyncDisposable {
  readonly up: Upstream;
  readonly bill: readonly Charged[];
}

const bytesOf = (piece: Piece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export async function biller(): Promise<Biller> {
  const bill: Charged[] = [];
  const answer = (asked: Asked): Answer => {
    const text = asked.body.toString();
    const [, tag = "?", words = "10", gap = "0", bad = "-"] =
      /tag=(\S+) words=(\d+) gap=(\d+) bad=([\w-]+)/.exec(text) ?? [];
    const of = asked.path.split("/")[1]!;
    if (bad === of)
      return json({ error: { type: "overloaded_error", message: "Too much to do." } }, 503);
    if (asked.path.endsWith("/images/generations")) {
      bill.push({ tag, of, asked, usage: () => ({ images: 1 }) });
      return { ...json({ created: 1, data: [{ b64_json: PNG }] }), waitMs: Number(gap) };
    }
    const count = Number(words);
    const usage: Usage = { input: 20 + (count % 7), cache_read: count % 5, output: count };
    const said = Array.from({ length: count }, (_, i) => `word${i}`).join(" ");
    const made = say(said)
      .usage(usage)
      .to({ ...asked, path: asked.path, json: () => asked.json() });
    const pieces = ([made.body].flat() as Piece[]).map(bytesOf);
    // Where each word ends, counted in bytes of the body.
    const ends: number[] = [];
    let at = 0;
    for (const piece of pieces) {
      at += piece.length;
      if (/word\d/.test(piece.toString())) ends.push(at);
    }
    const stream = asked.json().stream === true;
    bill.push({
      tag,
      of,
      asked,
      usage: () =>
        !stream || asked.state === "whole"
          ? usage
          : { ...usage, output: Math.min(count, ends.filter((end) => end <= asked.sent).length) },
    });
    return { ...made, gapMs: Number(gap) };
  };
  const up = await upstream({ "POST /*": answer, "GET /*": json({ object: "list", data: [] }) });
  return { up, bill, [Symbol.asyncDispose]: () => up.close() };
}

export const isGenerating = (asked: Asked): boolean => spokenAt(asked.path) !== undefined;
