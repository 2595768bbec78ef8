// A model API that keeps its own bill, to the token: what was whole is billed whole, what was cut is billed as far as it
// had been made, with all that was thought before it. Every answer is known by the words that its request brought.
import {
  json,
  say,
  upstream,
  type ScriptedAnswer,
  type UpstreamRequest,
  type Piece,
  type Speech,
  type TestUpstream,
} from "tollgate/testing";
import type { Usage } from "tollgate/plugin";
import { inGemini } from "../protocols/gemini/speech.ts";

/** Nano-dollars a token, as gateway.yaml has them below. */
const RATES = { input: 3_000n, cache_read: 300n, output: 15_000n } as const;
export const PICTURE = 40_000_000n;

/** The part of gateway.yaml under a provider. */
export const PRICED = `models: { model: { price: { input: 3, cache_read: 0.3, output: 15 }, limits: { context: 200000, output: 4096 } } }`;
export const DRAWN = `models: { draw: { kind: image, price: { images: 0.04 } } }`;

export const EMBEDDED = `models: { vec: { kind: embedding, price: { input: 3 } } }`;

/** Sound from a text by the character, and a text from sound by the second. */
export const SPOKEN = `models: { voice: { kind: speech, price: { characters: 0.000015 } } }`;
export const WRITTEN = `models: { ear: { kind: transcript, price: { seconds: 0.0001 } } }`;
/** No client has heard all of a sound that does not end so. */
export const SOUND_END = "the end of the sound";

export const priced = (usage: Usage): bigint =>
  BigInt(usage.input ?? 0) * RATES.input +
  BigInt(usage.cache_read ?? 0) * RATES.cache_read +
  BigInt(usage.output ?? 0) * RATES.output +
  BigInt(usage.images ?? 0) * PICTURE +
  BigInt(usage.characters ?? 0) * 15_000n +
  BigInt(usage.seconds ?? 0) * 100_000n;

/** What a request asks of the upstream, in its own words: `tag=3.7 words=40 gap=2`. */
export interface Wish {
  readonly tag: string;
  readonly words: number;
  readonly gap: number;
  /** Which path does not answer it, so that another provider does. */
  readonly bad?: string;
  /** How it does not: it is overloaded, or hangs up. */
  readonly how?: "busy" | "reset";
  /** Tokens of thought, which are billed and never shown. */
  readonly thought?: number;
}

export const wished = ({ tag, words, gap, bad, how = "busy", thought = 0 }: Wish): string =>
  `tag=${tag} words=${words} gap=${gap} thought=${thought} bad=${bad || "-"} how=${how}`;

const WISH = /tag=(\S+) words=(\d+) gap=(\d+) thought=(\d+) bad=([\w-]+) how=(\w+)/;
/** This provider bills all of an answer, though its client has left meanwhile. */
export const DRAINED = "drains";

export interface Charged {
  readonly tag: string;
  /** The first part of the path: which provider was asked. */
  readonly of: string;
  readonly asked: UpstreamRequest;
  usage(): Usage;
}

export interface Biller extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly bill: readonly Charged[];
}

const bytesOf = (piece: Piece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const isGemini = (asked: UpstreamRequest) => asked.path.includes(":");

const streams = (asked: UpstreamRequest): boolean =>
  isGemini(asked) ? asked.path.endsWith(":streamGenerateContent") : asked.json().stream === true;

/** In the protocol that was asked, Gemini's included. */
export const spoken = (speech: Speech, asked: UpstreamRequest): ScriptedAnswer =>
  isGemini(asked) ? inGemini(speech, { stream: streams(asked), n: asked.n }) : speech.to(asked);

export async function biller(): Promise<Biller> {
  const bill: Charged[] = [];
  const answer = (asked: UpstreamRequest): ScriptedAnswer => {
    const text = asked.body.toString();
    const [, tag = "?", words = "10", gap = "0", thought = "0", bad = "-", how = ""] =
      WISH.exec(text) ?? [];
    const of = asked.path.split("/")[1]!;
    if (bad === of)
      return {
        ...json({ error: { type: "overloaded_error", message: "Too much to do." } }, 503),
        ...(how === "reset" && { cut: { after: "nothing", how: "reset" } }),
      };
    if (asked.path.endsWith("/images/generations")) {
      bill.push({ tag, of, asked, usage: () => ({ images: 1 }) });
      return { ...json({ created: 1, data: [{ b64_json: PNG }] }), waitMs: Number(gap) };
    }
    if (asked.path.endsWith("/embeddings")) {
      const input = 20 + Number(gap);
      bill.push({ tag, of, asked, usage: () => ({ input }) });
      const said = {
        data: [{ index: 0, embedding: [0.5] }],
        usage: { prompt_tokens: input, total_tokens: input },
      };
      return { ...json(said), waitMs: Number(gap) };
    }
    if (asked.path.endsWith("/audio/speech")) {
      const characters = Array.from(asked.json().input as string).length;
      bill.push({ tag, of, asked, usage: () => ({ characters }) });
      return {
        headers: { "content-type": "audio/mpeg" },
        body: [...Array.from({ length: Number(words) }, () => "la la la "), SOUND_END],
        framing: "chunked",
        gapMs: Number(gap),
      };
    }
    if (asked.path.endsWith("/audio/transcriptions")) {
      const seconds = 1 + Number(words);
      bill.push({ tag, of, asked, usage: () => ({ seconds }) });
      const said = { text: "la la la", usage: { type: "duration", seconds } };
      return { ...json(said), waitMs: Number(gap) };
    }
    const count = Number(words);
    const reasoning = Number(thought);
    const usage: Usage = {
      input: 20 + (count % 7),
      cache_read: count % 5,
      output: count + reasoning,
      ...(reasoning > 0 && { reasoning }),
    };
    const said = Array.from({ length: count }, (_, i) => `word${i}`).join(" ");
    const speech = say(said).usage(usage);
    const stream = streams(asked);
    const made = spoken(speech, asked);
    const pieces = ([made.body].flat() as Piece[]).map(bytesOf);
    // Where each word ends, counted in bytes of the body.
    const ends: number[] = [];
    let at = 0;
    for (const piece of pieces) {
      at += piece.length;
      if (/word\d/.test(piece.toString())) ends.push(at);
    }
    bill.push({
      tag,
      of,
      asked,
      usage: () =>
        !stream || of === DRAINED || asked.state === "whole"
          ? usage
          : { ...usage, output: reasoning + ends.filter((end) => end <= asked.sent).length },
    });
    // A whole answer has no gaps: it comes so much later.
    const waitMs = Math.ceil(reasoning / 20) + (stream ? 0 : Number(gap));
    return { ...made, gapMs: Number(gap), waitMs };
  };
  const up = await upstream({ "POST /*": answer, "GET /*": json({ object: "list", data: [] }) });
  return { up, bill, [Symbol.asyncDispose]: () => up.close() };
}
