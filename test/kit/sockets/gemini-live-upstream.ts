// A fake provider of Google's Live API, written from its reference and judged by the official client
// (test/clients/realtime). Every report of usage counts one generation with the whole conversation.
import { SocketUpstream, type UpstreamOptions, type UpstreamSocket } from "./socket-upstream.ts";

export interface LiveUsage {
  readonly promptTokenCount: number;
  readonly responseTokenCount: number;
  readonly totalTokenCount: number;
  readonly promptTokensDetails: readonly { modality: string; tokenCount: number }[];
  readonly responseTokensDetails: readonly { modality: string; tokenCount: number }[];
}

export interface GeminiLiveOptions extends UpstreamOptions {
  /** Words of each response. Every word comes with 40 ms of audio. Default: "Hello there friend". */
  readonly words?: string;
  /** Whether the usage report is a message of its own after the end of the turn. Default: inside it. */
  readonly lateUsage?: boolean;
  /** Whether there is no usage report. */
  readonly hidesUsage?: boolean;
  /** Name of a function that the model calls in its first turn. */
  readonly calls?: string;
}

export interface GeminiLiveUpstream extends SocketUpstream {
  /** Usage reports that were sent. */
  readonly usages: LiveUsage[];
}

type Message = { readonly [name: string]: any };

/** Bytes of 40 ms of 16-bit PCM at 24 kHz: one token. */
const SOUND = Buffer.alloc(1_920, 7).toString("base64");

/** The path at which the API is served, under the base URL. */
export const LIVE_PATH =
  "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";

export async function startGeminiLiveUpstream(
  options: GeminiLiveOptions = {},
): Promise<GeminiLiveUpstream> {
  const usages: LiveUsage[] = [];
  const upstream = await SocketUpstream.start(
    (socket) => {
      const session = new LiveSession(socket, usages, () => ({ ...options, ...upstream.options }));
      return (message) => session.read(message);
    },
    { ...options, binary: true },
  );
  return Object.assign(upstream, { usages });
}

export class LiveSession {
  readonly #socket: UpstreamSocket;
  readonly #usages: LiveUsage[];
  readonly #options: () => GeminiLiveOptions;
  #isSetUp = false;
  #isAudio = true;
  #read = { text: 10, audio: 0 };
  #hasCalled = false;
  #heard = 0;
  #isSpeaking = false;

  constructor(socket: UpstreamSocket, usages: LiveUsage[], options: () => GeminiLiveOptions) {
    this.#socket = socket;
    this.#usages = usages;
    this.#options = options;
  }

  async read(text: string): Promise<void> {
    let message: Message;
    try {
      message = JSON.parse(text, withCamelCase) as Message;
    } catch {
      return this.#socket.close(1007, "Request payload is not valid JSON.");
    }
    const setup = message["setup"] as Message | undefined;
    if (!this.#isSetUp) {
      if (!setup || !/^(?:projects\/.*)?models\/[^/]+$/.test(String(setup["model"])))
        return this.#socket.close(1008, `models/${String(setup?.["model"])} is not found`);
      this.#isSetUp = true;
      const modalities = (setup["generationConfig"] as Message | undefined)?.[
        "responseModalities"
      ] as string[] | undefined;
      this.#isAudio = modalities?.[0] !== "TEXT";
      return this.#socket.send({ setupComplete: {} });
    }
    if (setup) return this.#socket.close(1007, "setup must be the first message.");
    const content = message["clientContent"] as Message | undefined;
    if (content) {
      for (const turn of (content["turns"] as Message[] | undefined) ?? [])
        for (const part of (turn["parts"] as Message[] | undefined) ?? [])
          this.#read.text += words(String(part["text"] ?? ""));
      if (content["turnComplete"] === true) return this.#respond();
      return undefined;
    }
    if (message["toolResponse"]) {
      this.#read.text += 5;
      return this.#respond();
    }
    const input = message["realtimeInput"] as Message | undefined;
    if (input) return this.#hear(input);
    return this.#socket.close(1007, "Unknown message.");
  }

  async #hear(input: Message): Promise<void> {
    if (typeof input["text"] === "string") {
      this.#read.text += words(input["text"]);
      return this.#respond();
    }
    const audio = input["audio"] as Message | undefined;
    if (!audio) return undefined;
    const bytes = Buffer.from(String(audio["data"]), "base64");
    if (bytes.some((byte) => byte !== 0)) {
      this.#heard += bytes.length;
      return undefined;
    }
    if (this.#heard === 0) return undefined;
    // 25 tokens per second of 16-bit PCM at 16 kHz.
    this.#read.audio += Math.ceil((this.#heard / 32_000) * 25);
    this.#heard = 0;
    return this.#respond();
  }

  async #respond(): Promise<void> {
    if (this.#isSpeaking) return;
    this.#isSpeaking = true;
    const { words: said = "Hello there friend", calls, lateUsage, hidesUsage } = this.#options();
    const input = { ...this.#read };
    if (calls !== undefined && !this.#hasCalled) {
      this.#hasCalled = true;
      const usage = this.#count(input, { text: 4, audio: 0 }, hidesUsage);
      await this.#socket.send({
        toolCall: { functionCalls: [{ id: "call-1", name: calls, args: {} }] },
        ...(usage && { usageMetadata: usage }),
      });
      this.#isSpeaking = false;
      return;
    }
    let count = 0;
    for (const word of said.split(" ")) {
      count++;
      const parts = this.#isAudio
        ? [{ inlineData: { mimeType: "audio/pcm;rate=24000", data: SOUND } }]
        : [{ text: `${word} ` }];
      await this.#socket.send({ serverContent: { modelTurn: { role: "model", parts } } });
    }
    await this.#socket.send({ serverContent: { generationComplete: true } });
    const made = this.#isAudio ? { text: 0, audio: count } : { text: count, audio: 0 };
    const usage = this.#count(input, made, hidesUsage);
    this.#isSpeaking = false;
    await this.#socket.send({
      serverContent: { turnComplete: true },
      ...(usage && !lateUsage && { usageMetadata: usage }),
    });
    if (usage && lateUsage) await this.#socket.send({ usageMetadata: usage });
  }

  #count(
    read: { text: number; audio: number },
    made: { text: number; audio: number },
    hidden: boolean | undefined,
  ): LiveUsage | undefined {
    this.#read = { text: read.text + made.text, audio: read.audio + made.audio };
    if (hidden) return undefined;
    const details = (of: { text: number; audio: number }) => [
      ...(of.text > 0 ? [{ modality: "TEXT", tokenCount: of.text }] : []),
      ...(of.audio > 0 ? [{ modality: "AUDIO", tokenCount: of.audio }] : []),
    ];
    const usage = {
      promptTokenCount: read.text + read.audio,
      responseTokenCount: made.text + made.audio,
      totalTokenCount: read.text + read.audio + made.text + made.audio,
      promptTokensDetails: details(read),
      responseTokensDetails: details(made),
    };
    this.#usages.push(usage);
    return usage;
  }
}

const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

/** Python's client sends field names in snake case, which JSON of protocol buffers also allows. */
function withCamelCase(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      member,
    ]),
  );
}
