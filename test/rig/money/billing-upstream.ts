// A model API with its own exact bill: a complete response is billed completely, and a truncated
// one as far as it was generated, with all reasoning before it. Every response is identified by the
// text of its request.
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

/** Nano-dollars per token, as in gateway.yaml below. */
const RATES = { input: 3_000n, cache_read: 300n, output: 15_000n } as const;
export const PICTURE = 40_000_000n;

/** The section of gateway.yaml for a provider. */
export const PRICED = `models: { model: { price: { input: 3, cache_read: 0.3, output: 15 }, limits: { context: 200000, output: 4096 } } }`;

/** Every form of the traffic, by its name in gateway.yaml. */
export const FRONTENDS =
  "[chat-completions, messages, responses, gemini, images, embeddings, rerank, moderations, completions, speech, transcriptions]";

/**
 * Billing providers, one for each way in which a vendor may bill, by their names in gateway.yaml.
 */
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

/** A client has received complete audio only with this end. */
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

/** A request's order for the upstream in its own text: `tag=3.7 words=40 gap=2`. */
export interface RequestScript {
  readonly tag: string;
  readonly words: number;
  readonly gap: number;
  /** Path that does not respond, so that a fallback does. */
  readonly bad?: string;
  /** Reason: it is overloaded, or closes the connection. */
  readonly how?: "busy" | "reset";
  /** Reasoning tokens, which are billed and never shown. */
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
/** This provider bills the complete response although its client disconnected. */
export const DRAINED = "drains";

export interface BilledRequest {
  readonly tag: string;
  /** First segment of the path: the called provider. */
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

/** Like hosts of base models. */
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

/** In the requested protocol, including Gemini's. */
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
      // Long documents count as several: a provider bills by its own count. Few documents count as
      // one, which the assumption uses.
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
    // End of each word, in bytes of the body.
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
    // A non-streaming response has no gaps, but the same delay.
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
