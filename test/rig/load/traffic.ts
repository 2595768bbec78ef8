// Clients of every protocol, streaming and non-streaming, some of which disconnect early or need a
// fallback.
import type { Chance } from "../rig.ts";
import { DRAINED, SOUND_END, encodeScript } from "../money/billing-upstream.ts";
import { PNG } from "../money/vendor-formats.ts";

export interface Request {
  readonly tag: string;
  readonly path: string;
  readonly body: object;
  readonly stream: boolean;
  /** Disconnects after this many bytes. */
  readonly leaves: number | undefined;
}

export interface ClientResult {
  readonly request: Request;
  readonly status: number;
  readonly text: string;
  /** The upstream's part of the received text. */
  readonly words: number;
  /** Total duration. */
  readonly ms: number;
  /** The client received the end of its response. */
  readonly delivered: boolean;
  /** The reason of an early end, unless the client disconnected. */
  readonly why: string | undefined;
}

const CLIENTS = [
  { path: "/v1/chat/completions", end: "data: [DONE]" },
  { path: "/v1/messages", end: '"type":"message_stop"' },
  { path: "/v1/responses", end: "response.completed" },
  { path: "/v1beta/models", end: '"finishReason"' },
] as const;

/** Content of a stream's last event. */
const ENDS = [...CLIENTS, { path: "/v1/completions", end: "data: [DONE]" }];

/** Reasoning settings of a model. */
const THINK = {
  "/v1/chat/completions": { reasoning_effort: "medium" },
  "/v1/messages": { thinking: { type: "adaptive" } },
  "/v1/responses": { reasoning: { effort: "medium" } },
  "/v1beta/models": { thinkingConfig: { thinkingBudget: 600 } },
} as const;

/** Path of each provider, and its name in gateway.yaml. */
export const PROVIDERS = ["chat", "messages", "responses"] as const;
export const TARGETS = [...PROVIDERS, "gemini", DRAINED] as const;

/** Shares of clients that disconnect early, and that need a fallback. */
const USUAL = { leave: 0.15, retried: 0.25 };

export function nextRequest(chance: Chance, tag: string, shares = USUAL): Request {
  if (chance.often(0.08)) return drawn(chance, tag);
  if (chance.often(0.08)) {
    const input = [encodeScript({ tag, words: 0, gap: chance.below(30) })];
    const body = { model: "vectors/vec", input };
    return { tag, path: "/v1/embeddings", body, stream: false, leaves: undefined };
  }
  if (chance.often(0.1)) return heardOrSpoken(chance, tag, shares);
  if (chance.often(0.08)) return rankedOrJudged(chance, tag);
  if (chance.often(0.08)) return goneOn(chance, tag, shares);
  const { path } = chance.one(CLIENTS);
  const stream = chance.often(0.6);
  const retried = chance.often(shares.retried);
  const first = chance.one(TARGETS);
  const thought = chance.often(0.3) ? 1 + chance.below(500) : 0;
  const words = encodeScript({
    tag,
    words: 1 + chance.below(chance.often(0.1) ? 400 : 40),
    gap: stream ? 1 + chance.below(7) : 0,
    thought,
    ...(retried && { bad: first, how: chance.one(["busy", "reset"] as const) }),
  });
  const model = retried ? `any-${first}` : `${first}/model`;
  const leaves = chance.often(shares.leave) ? chance.below(4_000) : undefined;
  if (path === "/v1beta/models") {
    // The path contains the model and the method.
    const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent";
    const generationConfig = { maxOutputTokens: 1_000, ...(thought > 0 && THINK[path]) };
    const body = { contents: [{ role: "user", parts: [{ text: words }] }], generationConfig };
    return { tag, path: `${path}/${model}:${verb}`, body, stream, leaves };
  }
  const messages = [{ role: "user", content: words }];
  const body = {
    model,
    stream,
    ...(path.endsWith("responses") ? { input: words } : { max_tokens: 1_000, messages }),
    ...(thought > 0 && THINK[path]),
  };
  return { tag, path, body, stream, leaves };
}

/** An image, generated from text or edited from another one. */
function drawn(chance: Chance, tag: string): Request {
  const prompt = encodeScript({ tag, words: 0, gap: chance.below(30) });
  const body = { model: "pictures/draw", prompt, response_format: "b64_json" };
  const whole = { tag, stream: false, leaves: undefined };
  return chance.often(0.5)
    ? { ...whole, path: "/v1/images/generations", body }
    : { ...whole, path: EDITS, body: { ...body, image: PNG } };
}

function rankedOrJudged(chance: Chance, tag: string): Request {
  const words = encodeScript({ tag, words: chance.below(30), gap: chance.below(30) });
  const whole = { tag, stream: false, leaves: undefined };
  if (chance.often(0.5)) {
    const body = { model: "judges/judge", input: words };
    return { ...whole, path: "/v1/moderations", body };
  }
  const body = { model: "ranks/rank", query: words, documents: ["one", "two"] };
  return { ...whole, path: chance.one(["/v1/rerank", "/v2/rerank"]), body };
}

/** A text that a base model completes. */
function goneOn(chance: Chance, tag: string, shares: typeof USUAL): Request {
  const stream = chance.often(0.6);
  const gap = stream ? 1 + chance.below(7) : 0;
  const prompt = encodeScript({ tag, words: 1 + chance.below(60), gap });
  const body = { model: "bases/base", prompt, stream, max_tokens: 1_000 };
  const leaves = chance.often(shares.leave) ? chance.below(2_000) : undefined;
  return { tag, path: "/v1/completions", body, stream, leaves };
}

/** A text to speak, or a file to transcribe. The order is in either. */
function heardOrSpoken(chance: Chance, tag: string, shares: typeof USUAL): Request {
  const words = encodeScript({ tag, words: 1 + chance.below(30), gap: chance.below(6) });
  if (chance.often(0.5)) {
    const leaves = chance.often(shares.leave) ? chance.below(200) : undefined;
    const body = { model: "voices/voice", input: words, voice: "any" };
    return { tag, path: "/v1/audio/speech", body, stream: false, leaves };
  }
  const body = { model: "ears/ear", file: words.padEnd(HEARD_BYTES) };
  return { tag, path: TRANSCRIPTIONS, body, stream: false, leaves: undefined };
}

const EDITS = "/v1/images/edits";
const TRANSCRIPTIONS = "/v1/audio/transcriptions";
/**
 * No file states more seconds than its bytes can contain, at 750 bytes per second: the upstream
 * bills at most these.
 */
const HEARD_BYTES = 31 * 750;

function formOf(body: object): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body))
    if (name === "file") form.set(name, new Blob([value]), "sound.wav");
    else if (name === "image")
      form.set(name, new Blob([Buffer.from(value, "base64")], { type: "image/png" }), "one.png");
    else form.set(name, String(value));
  return form;
}

/** Header in which each client sends its key. */
function keyed(path: string, key: string): Record<string, string> {
  if (path === "/v1/messages") return { "x-api-key": key, "anthropic-version": "2023-06-01" };
  return path.startsWith("/v1beta/")
    ? { "x-goog-api-key": key }
    : { authorization: `Bearer ${key}` };
}

/** `given`: maximum wait of its client. `anew`: on a connection of its own. */
export async function ask(
  url: string,
  key: string,
  request: Request,
  { given, anew = false }: { readonly given?: AbortSignal; readonly anew?: boolean } = {},
): Promise<ClientResult> {
  const away = new AbortController();
  const began = performance.now();
  let text = "";
  let status = 0;
  let why: string | undefined;
  const isForm = request.path === EDITS || request.path === TRANSCRIPTIONS;
  try {
    const answer = await fetch(`${url}${request.path}`, {
      method: "POST",
      headers: {
        ...(!isForm && { "content-type": "application/json" }),
        "x-rig": request.tag,
        ...(anew && { connection: "close" }),
        ...keyed(request.path, key),
      },
      body: isForm ? formOf(request.body) : JSON.stringify(request.body),
      signal: given ? AbortSignal.any([away.signal, given]) : away.signal,
    });
    status = answer.status;
    for await (const chunk of answer.body!) {
      text += Buffer.from(chunk).toString();
      if (request.leaves !== undefined && text.length >= request.leaves) away.abort();
    }
  } catch (error) {
    // Truncated by the crash or by itself: the received part counts.
    if (!away.signal.aborted) why = String((error as Error).cause ?? error);
  }
  const end = ENDS.find(({ path }) => request.path.startsWith(path))?.end;
  const delivered =
    status === 200 &&
    (request.path === "/v1/audio/speech"
      ? text.endsWith(SOUND_END)
      : request.stream && end !== undefined
        ? text.includes(end)
        : isWhole(text)) &&
    !/"type":\s*"error"/.test(text);
  const words = text.match(/word\d/g)?.length ?? 0;
  const ms = performance.now() - began;
  return { request, status, text, words, ms, delivered, why };
}

function isWhole(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
