// A model API that keeps its own bill, to the token: what was whole is billed whole, what was cut is billed as far as it
// had been made, with all that was thought before it. Every answer is known by the words that its request brought.
import {
  eventStreamResponse,
  jsonResponse,
  say,
  startUpstream,
  type ScriptedResponse,
  type UpstreamRequest,
  type ResponsePiece,
  type ModelScript,
  type TestUpstream,
} from "tollgate/testing";
import { inputTokens, type Usage } from "tollgate/plugin";
import { inGemini } from "../../protocols/gemini/speech.ts";
import { AFTERWARDS, sold } from "./vendor-formats.ts";

/** Nano-dollars a token, as gateway.yaml has them below. */
const RATES = { input: 3_000n, cache_read: 300n, output: 15_000n } as const;
export const PICTURE = 40_000_000n;

/** The part of gateway.yaml under a provider. */
export const PRICED = `models: { model: { price: { input: 3, cache_read: 0.3, output: 15 }, limits: { context: 200000, output: 4096 } } }`;

/** Every way in which the traffic comes, as gateway.yaml names it. */
export const FRONTENDS =
  "[chat-completions, messages, responses, gemini, images, embeddings, rerank, moderations, completions, speech, transcriptions]";

/** What bills here, one provider for each way in which a vendor may, as gateway.yaml has them. */
export const billing = (url: string): string => `
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, ${PRICED} }
  ${DRAINED}: { use: openai-compatible, on_disconnect: drain, with: { base_url: "${url}/${DRAINED}/v1", api_key: k }, ${PRICED} }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, ${PRICED} }
  responses: { use: openai, with: { base_url: "${url}/responses/v1", api_key: k }, ${PRICED.replace("{ model: {", "{ model: { protocols: [responses],")} }
  gemini: { use: google, with: { base_url: "${url}/gemini", api_key: k }, ${PRICED} }
  pictures: { use: openai-compatible, with: { base_url: "${url}/pictures/v1", api_key: k, images: ["draw"], image_edits: true }, models: { draw: { operation: image, price: { images: 0.04 } } } }
  vectors: { use: openai-compatible, with: { base_url: "${url}/vectors/v1", api_key: k, embeddings: ["vec"] }, models: { vec: { operation: embedding, price: { input: 3 } } } }
  voices: { use: openai-compatible, with: { base_url: "${url}/voices/v1", api_key: k, speech: ["voice"] }, models: { voice: { operation: speech, price: { characters: 0.000015 } } } }
  ears: { use: openai-compatible, with: { base_url: "${url}/ears/v1", api_key: k, transcriptions: ["ear"] }, models: { ear: { operation: transcript, price: { seconds: 0.0001 } } } }
  ranks: { use: openai-compatible, with: { base_url: "${url}/ranks/v1", api_key: k, rerank: ["rank"] }, models: { rank: { operation: rerank, price: { searches: 0.002 } } } }
  judges: { use: openai, with: { base_url: "${url}/judges/v1", api_key: k }, models: { judge: { operation: moderation, price: { input: 3 } } } }
  bases: { use: vllm, with: { base_url: "${url}/bases/v1" }, ${PRICED.replace("{ model: {", "{ base: { operation: completion,")} }`;

/** No client has heard all of a sound that does not end so. */
export const SOUND_END = "the end of the sound";

export const priced = (usage: Usage): bigint =>
  BigInt(usage.input ?? 0) * RATES.input +
  BigInt(usage.cache_read ?? 0) * RATES.cache_read +
  BigInt(usage.output ?? 0) * RATES.output +
  BigInt(usage.images ?? 0) * PICTURE +
  BigInt(usage.image_out ?? 0) * 30_000n +
  BigInt(usage.characters ?? 0) * 15_000n +
  BigInt(usage.seconds ?? 0) * 100_000n +
  BigInt(usage.searches ?? 0) * 2_000_000n;

/** What a request asks of the upstream, in its own words: `tag=3.7 words=40 gap=2`. */
export interface RequestScript {
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

export const encodeScript = ({
  tag,
  words,
  gap,
  bad,
  how = "busy",
  thought = 0,
}: RequestScript): string =>
  `tag=${tag} words=${words} gap=${gap} thought=${thought} bad=${bad || "-"} how=${how}`;

const WISH = /tag=(\S+) words=(\d+) gap=(\d+) thought=(\d+) bad=([\w-]+) how=(\w+)/;
/** This provider bills all of an answer, though its client has left meanwhile. */
export const DRAINED = "drains";

export interface BilledRequest {
  readonly tag: string;
  /** The first part of the path: which provider was asked. */
  readonly of: string;
  readonly asked: UpstreamRequest;
  usage(): Usage;
}

export interface BillingUpstream extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly bill: readonly BilledRequest[];
}

const bytesOf = (piece: ResponsePiece): Buffer =>
  Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string));

export const isGemini = (asked: UpstreamRequest) => asked.path.includes(":");

const streams = (asked: UpstreamRequest): boolean =>
  isGemini(asked) ? asked.path.endsWith(":streamGenerateContent") : asked.json().stream === true;

/** As hosts of base models say it. */
function completed(words: string, usage: Usage, stream: boolean): ScriptedResponse {
  const frame = { id: "cmpl-1", object: "text_completion", created: 1, model: "base" };
  const told = {
    prompt_tokens: inputTokens(usage),
    prompt_tokens_details: { cached_tokens: usage.cache_read ?? 0 },
    completion_tokens: usage.output ?? 0,
    total_tokens: inputTokens(usage) + (usage.output ?? 0),
  };
  const choices = (text: string, finish_reason: string | null = null) => [
    { text, index: 0, logprobs: null, finish_reason },
  ];
  if (!stream)
    return jsonResponse({ ...frame, choices: choices(words, "stop"), usage: told } as never);
  const event = (data: object) => `data: ${JSON.stringify({ ...frame, ...data })}\n\n`;
  return eventStreamResponse([
    ...words.split(/(?= )/).map((text) => event({ choices: choices(text) })),
    event({ choices: choices("", "stop") }),
    event({ choices: [], usage: told }),
    "data: [DONE]\n\n",
  ]);
}

/** In the protocol that was asked, Gemini's included. */
export const spoken = (speech: ModelScript, asked: UpstreamRequest): ScriptedResponse =>
  isGemini(asked)
    ? inGemini(speech, { stream: streams(asked), n: asked.number })
    : speech.toResponse(asked);

export async function startBillingUpstream(): Promise<BillingUpstream> {
  const bill: BilledRequest[] = [];
  const answer = (asked: UpstreamRequest): ScriptedResponse => {
    const text = asked.body.toString();
    const [, tag = "?", words = "10", gap = "0", thought = "0", bad = "-", how = ""] =
      WISH.exec(text) ?? [];
    const of = asked.path.split("/")[1]!;
    if (bad === of)
      return {
        ...jsonResponse({ error: { type: "overloaded_error", message: "Too much to do." } }, 503),
        ...(how === "reset" && { truncation: { after: "nothing", how: "reset" } }),
      };
    const special = sold(asked, 20 + Number(gap));
    if (special) {
      bill.push({ tag, of, asked, usage: () => special.usage });
      return { ...special.answer, delayMs: Number(gap) };
    }
    if (asked.path.endsWith("/embeddings")) {
      const input = 20 + Number(gap);
      bill.push({ tag, of, asked, usage: () => ({ input }) });
      const said = {
        data: [{ index: 0, embedding: [0.5] }],
        usage: { prompt_tokens: input, total_tokens: input },
      };
      return { ...jsonResponse(said), delayMs: Number(gap) };
    }
    if (asked.path.endsWith("/rerank")) {
      const { documents } = asked.json() as { documents: readonly string[] };
      // Long documents count as several: a host's own count is what it bills by.
      // Of so few documents it is one, as its makers count them: what is assumed goes by that.
      const searches = 1;
      bill.push({ tag, of, asked, usage: () => ({ searches }) });
      const said = {
        id: "r1",
        results: documents.map((_, index) => ({ index, relevance_score: 1 / (index + 1) })),
        meta: { billed_units: { search_units: searches } },
      };
      return { ...jsonResponse(said), delayMs: Number(gap) };
    }
    if (asked.path.endsWith("/moderations")) {
      const input = 20 + Number(gap);
      bill.push({ tag, of, asked, usage: () => ({ input }) });
      const said = {
        id: "m1",
        results: [{ flagged: false, categories: {}, category_scores: {} }],
        usage: { prompt_tokens: input, completion_tokens: 0, total_tokens: input },
      };
      return { ...jsonResponse(said), delayMs: Number(gap) };
    }
    if (asked.path.endsWith("/audio/speech")) {
      const characters = Array.from(asked.json().input as string).length;
      bill.push({ tag, of, asked, usage: () => ({ characters }) });
      return {
        headers: { "content-type": "audio/mpeg" },
        body: [...Array.from({ length: Number(words) }, () => "la la la "), SOUND_END],
        framing: "chunked",
        chunkDelayMs: Number(gap),
      };
    }
    if (asked.path.endsWith("/audio/transcriptions")) {
      const seconds = 1 + Number(words);
      bill.push({ tag, of, asked, usage: () => ({ seconds }) });
      const said = { text: "la la la", usage: { type: "duration", seconds } };
      return { ...jsonResponse(said), delayMs: Number(gap) };
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
    const stream = streams(asked);
    const isBase = !asked.path.includes("/chat/") && asked.path.endsWith("/completions");
    const made = isBase ? completed(said, usage, stream) : spoken(say(said).usage(usage), asked);
    const pieces = ([made.body].flat() as ResponsePiece[]).map(bytesOf);
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
        !stream || of === DRAINED || asked.state === "complete"
          ? usage
          : { ...usage, output: reasoning + ends.filter((end) => end <= asked.bytesSent).length },
    });
    // A whole answer has no gaps: it comes so much later.
    const waitMs = Math.ceil(reasoning / 20) + (stream ? 0 : Number(gap));
    return { ...made, chunkDelayMs: Number(gap), delayMs: waitMs };
  };
  const up = await startUpstream({
    "POST /*": answer,
    ...AFTERWARDS,
    "GET /*": jsonResponse({ object: "list", data: [] }),
  });
  return { up, bill, [Symbol.asyncDispose]: () => up.close() };
}
