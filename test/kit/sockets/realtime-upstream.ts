// A fake provider of the Realtime API, written from its specification (openapi.yaml) and judged by the
// official client (test/clients/realtime). It keeps a conversation, hears when the user stops
// speaking, and counts the tokens of what it has read and made.
import type { IncomingMessage } from "node:http";
import {
  SocketUpstream,
  type HttpAnswer,
  type UpstreamOptions,
  type UpstreamSocket,
} from "./socket-upstream.ts";

/** A response as the provider reported it in `response.done`. */
export interface ReportedResponse {
  readonly id: string;
  readonly status: string;
  readonly usage: RealtimeUsage | null;
}

export interface RealtimeUsage {
  readonly total_tokens: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly input_token_details: {
    readonly text_tokens: number;
    readonly audio_tokens: number;
    readonly image_tokens: number;
    readonly cached_tokens: number;
    readonly cached_tokens_details: {
      readonly text_tokens: number;
      readonly audio_tokens: number;
      readonly image_tokens: number;
    };
  };
  readonly output_token_details: { readonly text_tokens: number; readonly audio_tokens: number };
}

export interface RealtimeOptions extends UpstreamOptions {
  /** Words of each response. Every word comes with 100 ms of audio. Default: "Hello there friend". */
  readonly words?: string;
  /** Whether `response.done` has no usage. */
  readonly hidesUsage?: boolean;
  /** Models of `GET /v1/models`. Default: the provider has no such list. */
  readonly models?: readonly string[];
}

/** A call over WebRTC that was set up. */
export interface FakeCall {
  readonly id: string;
  readonly authorization: string | undefined;
  readonly sdp: string;
  readonly session: object;
  isHungUp: boolean;
  /** Sends an event as the browser would, over its data channel. Set when the call is observed. */
  speak?: (event: object) => Promise<void>;
}

export interface RealtimeUpstream extends SocketUpstream {
  readonly calls: FakeCall[];
  readonly responses: ReportedResponse[];
  readonly transcriptions: { item: string; usage: object }[];
}

type Event = { readonly type?: string; readonly [name: string]: any };

/** Bytes of 100 ms of 16-bit PCM at 24 kHz. */
export const TENTH = 4_800;
/** Speech: any audio that is not silent. */
export const speech = (tenths: number): string =>
  Buffer.alloc(TENTH * tenths, 7).toString("base64");
/** Silence, which ends the user's turn. */
export const silence = (tenths: number): string => Buffer.alloc(TENTH * tenths).toString("base64");

export async function startRealtimeUpstream(
  options: RealtimeOptions = {},
): Promise<RealtimeUpstream> {
  const responses: ReportedResponse[] = [];
  const transcriptions: { item: string; usage: object }[] = [];
  const calls: FakeCall[] = [];
  const upstream = await SocketUpstream.start(
    (socket) => {
      const session = new RealtimeSession(socket, { responses, transcriptions }, () => ({
        ...options,
        ...upstream.options,
      }));
      const observed = calls.find(({ id }) => id === socket.url.searchParams.get("call_id"));
      if (observed) {
        session.apply(observed.session);
        observed.speak = (event) => session.read(JSON.stringify(event));
      }
      return (message) => session.read(message);
    },
    {
      ...options,
      subprotocol: "realtime",
      answer: (req, body) => answerModels(options, req) ?? answerCall(calls, req, body),
    },
  );
  return Object.assign(upstream, { responses, transcriptions, calls });
}

function answerModels({ models }: RealtimeOptions, { url }: IncomingMessage) {
  if (models === undefined || url !== "/v1/models") return undefined;
  const data = models.map((id) => ({ id, object: "model", created: 0, owned_by: "vendor" }));
  return Promise.resolve({ status: 200, body: JSON.stringify({ object: "list", data }) });
}

async function answerCall(
  calls: FakeCall[],
  { url = "", headers }: IncomingMessage,
  body: Buffer,
): ReturnType<HttpAnswer> {
  const ended = calls.find(({ id }) => url === `/v1/realtime/calls/${id}/hangup`);
  if (ended) {
    ended.isHungUp = true;
    return { status: 200 };
  }
  if (url !== "/v1/realtime/calls") return undefined;
  const type = { "content-type": headers["content-type"] ?? "" };
  const form = await new Response(new Uint8Array(body), { headers: type }).formData();
  const text = async (name: string) => await new Response(form.get(name) as Blob).text();
  const id = `rtc_${calls.length + 1}`;
  const session = JSON.parse(await text("session")) as object;
  const { authorization } = headers;
  calls.push({ id, authorization, sdp: await text("sdp"), session, isHungUp: false });
  const location = `/v1/realtime/calls/${id}`;
  return {
    status: 201,
    headers: { "content-type": "application/sdp", location },
    body: "v=0 answer",
  };
}

interface Counts {
  text: number;
  audio: number;
  image: number;
}

/** Number of sessions. IDs of different sessions differ. */
let sessions = 0;

export class RealtimeSession {
  readonly #socket: UpstreamSocket;
  readonly #to: {
    responses: ReportedResponse[];
    transcriptions: { item: string; usage: object }[];
  };
  readonly #options: () => RealtimeOptions;
  /** Tokens of the conversation, and the part of them that was read before. */
  #read: Counts = { text: 20, audio: 0, image: 0 };
  #cached: Counts = { text: 0, audio: 0, image: 0 };
  #session: Event;
  #buffer = { bytes: 0, speech: 0 };
  readonly #items = new Map<string, object>();
  readonly #number = ++sessions;
  /** Whether the session only transcribes. */
  readonly #transcribes: boolean;
  #ids = 0;
  #current: { id: string; canceled: boolean } | undefined;

  constructor(
    socket: UpstreamSocket,
    to: { responses: ReportedResponse[]; transcriptions: { item: string; usage: object }[] },
    options: () => RealtimeOptions,
  ) {
    this.#socket = socket;
    this.#to = to;
    this.#options = options;
    const model = socket.url.searchParams.get("model") ?? socket.url.searchParams.get("deployment");
    this.#transcribes = socket.url.searchParams.get("intent") === "transcription";
    this.#session = {
      type: this.#transcribes ? "transcription" : "realtime",
      object: "realtime.session",
      id: this.#id("sess"),
      model: model ?? "gpt-realtime",
      output_modalities: ["audio"],
      instructions: "Be brief.",
      tools: [],
      tool_choice: "auto",
      max_output_tokens: "inf",
      tracing: null,
      truncation: "auto",
      prompt: null,
      expires_at: 1_900_000_000,
      audio: {
        input: {
          format: { type: "audio/pcm", rate: 24_000 },
          transcription: null,
          noise_reduction: null,
          turn_detection: {
            type: "server_vad",
            threshold: 0.5,
            prefix_padding_ms: 300,
            silence_duration_ms: 200,
            idle_timeout_ms: null,
            create_response: true,
            interrupt_response: true,
          },
        },
        output: { format: { type: "audio/pcm", rate: 24_000 }, voice: "alloy", speed: 1 },
      },
      include: null,
    };
    void this.#send("session.created", { session: this.#session });
  }

  /** Applies the settings with which a call was set up. */
  apply(session: object): void {
    this.#session = merge(this.#session, session) as Event;
  }

  async read(message: string): Promise<void> {
    let event: Event;
    try {
      event = JSON.parse(message) as Event;
    } catch {
      return this.#error("invalid_json", "The event is not JSON.", null);
    }
    switch (event.type) {
      case "session.update":
        if ("voice" in (event["session"] as object))
          return this.#error(
            "unknown_parameter",
            "Unknown parameter: 'session.voice'.",
            (event["session"] as Event)["voice"] === "unnamed" ? null : event,
          );
        this.#session = merge(this.#session, event["session"] as object) as Event;
        return this.#send("session.updated", { session: this.#session });
      case "conversation.item.create":
        return this.#addItem(event["item"] as Event);
      case "input_audio_buffer.append":
        return this.#hear(Buffer.from(String(event["audio"]), "base64"));
      case "input_audio_buffer.commit":
        if (this.#buffer.bytes === 0)
          return this.#error("input_audio_buffer_commit_empty", "The buffer is empty.", event);
        return this.#commit(this.#buffer.bytes / 48_000);
      case "input_audio_buffer.clear":
        this.#buffer = { bytes: 0, speech: 0 };
        return this.#send("input_audio_buffer.cleared", {});
      case "response.create":
        if (this.#current)
          return this.#error(
            "conversation_already_has_active_response",
            "Conversation already has an active response.",
            event,
          );
        return this.#respond((event["response"] as Event | undefined) ?? {});
      case "response.cancel":
        if (this.#current) this.#current.canceled = true;
        else return this.#error("response_cancel_not_active", "No response is running.", event);
        return undefined;
      case "conversation.item.truncate": {
        const { item_id, content_index, audio_end_ms } = event;
        const of = { item_id, content_index, audio_end_ms };
        return this.#send("conversation.item.truncated", of);
      }
      case "conversation.item.retrieve": {
        const item = this.#items.get(String(event["item_id"]));
        return item
          ? this.#send("conversation.item.retrieved", { item })
          : this.#error("item_retrieve_invalid_item_id", "There is no such item.", event);
      }
      case "conversation.item.delete":
        return this.#send("conversation.item.deleted", { item_id: event["item_id"] });
      default:
        return this.#error("invalid_value", `Invalid value: '${String(event.type)}'.`, event);
    }
  }

  #id(prefix: string): string {
    return `${prefix}_${this.#number}_${(++this.#ids).toString().padStart(4, "0")}`;
  }

  #send(type: string, fields: object): Promise<void> {
    const { item } = fields as { item?: { id: string } };
    if (item && type === "conversation.item.done") this.#items.set(item.id, item);
    return this.#socket.send({ type, event_id: this.#id("event"), ...fields });
  }

  #error(code: string, message: string, cause: Event | null): Promise<void> {
    return this.#send("error", {
      error: {
        type: "invalid_request_error",
        code,
        message,
        param: null,
        event_id: (cause?.["event_id"] as string | undefined) ?? null,
      },
    });
  }

  async #addItem(item: Event): Promise<void> {
    for (const part of (item["content"] as Event[] | undefined) ?? []) {
      if (part.type === "input_image") this.#read.image += 85;
      else if (part.type === "input_audio")
        this.#read.audio += Math.ceil(Buffer.from(String(part["audio"]), "base64").length / TENTH);
      else this.#read.text += words(String(part["text"] ?? ""));
    }
    if (item.type === "function_call_output") this.#read.text += words(String(item["output"]));
    const added = { id: this.#id("item"), object: "realtime.item", status: "completed", ...item };
    await this.#send("conversation.item.added", { previous_item_id: null, item: added });
    await this.#send("conversation.item.done", { previous_item_id: null, item: added });
  }

  async #hear(audio: Buffer): Promise<void> {
    const isSpeech = audio.some((byte) => byte !== 0);
    const before = this.#buffer;
    this.#buffer = {
      bytes: before.bytes + audio.length,
      speech: before.speech + (isSpeech ? audio.length : 0),
    };
    const detection = this.#session["audio"]["input"]["turn_detection"] as Event | null;
    if (!detection) return;
    const item_id = "item_heard";
    if (isSpeech && before.speech === 0)
      await this.#send("input_audio_buffer.speech_started", { audio_start_ms: 0, item_id });
    if (isSpeech || before.speech === 0) return;
    const seconds = this.#buffer.speech / 48_000;
    await this.#send("input_audio_buffer.speech_stopped", {
      audio_end_ms: Math.round(seconds * 1_000),
      item_id,
    });
    await this.#commit(seconds);
    const responds = detection["create_response"] !== false && !this.#transcribes;
    if (responds && !this.#current) await this.#respond({});
  }

  async #commit(seconds: number): Promise<void> {
    this.#buffer = { bytes: 0, speech: 0 };
    this.#read.audio += Math.ceil(seconds * 10);
    const item_id = this.#id("item");
    await this.#send("input_audio_buffer.committed", { previous_item_id: null, item_id });
    const item = {
      id: item_id,
      object: "realtime.item",
      type: "message",
      status: "completed",
      role: "user",
      content: [{ type: "input_audio", transcript: null }],
    };
    await this.#send("conversation.item.added", { previous_item_id: null, item });
    await this.#send("conversation.item.done", { previous_item_id: null, item });
    const transcription = this.#session["audio"]["input"]["transcription"] as Event | null;
    if (!transcription) return;
    const usage = String(transcription["model"]).startsWith("whisper")
      ? { type: "duration", seconds: Math.ceil(seconds) }
      : {
          type: "tokens",
          total_tokens: Math.ceil(seconds * 10) + 5,
          input_tokens: Math.ceil(seconds * 10),
          input_token_details: { text_tokens: 0, audio_tokens: Math.ceil(seconds * 10) },
          output_tokens: 5,
        };
    this.#to.transcriptions.push({ item: item_id, usage });
    const of = { item_id, content_index: 0 };
    await this.#send("conversation.item.input_audio_transcription.delta", { ...of, delta: "Hi" });
    await this.#send("conversation.item.input_audio_transcription.completed", {
      ...of,
      transcript: "Hi",
      usage,
    });
  }

  async #respond(asked: Event): Promise<void> {
    const running = { id: this.#id("resp"), canceled: false };
    this.#current = running;
    const input = { ...this.#read };
    const cached = { ...this.#cached };
    const modality = (
      (asked["output_modalities"] ?? this.#session["output_modalities"]) as string[]
    )[0];
    const isAudio = modality === "audio";
    const item_id = this.#id("item");
    const response = {
      object: "realtime.response",
      id: running.id,
      status: "in_progress",
      status_details: null,
      output: [] as object[],
      conversation_id: asked["conversation"] === "none" ? null : "conv_0001",
      output_modalities: [modality],
      max_output_tokens: asked["max_output_tokens"] ?? this.#session["max_output_tokens"],
      audio: { output: this.#session["audio"]["output"] },
      usage: null,
      metadata: asked["metadata"] ?? null,
    };
    const item = (status: string, text: string) => ({
      id: item_id,
      object: "realtime.item",
      type: "message",
      status,
      role: "assistant",
      content: isAudio
        ? [{ type: "output_audio", transcript: text }]
        : [{ type: "output_text", text }],
    });
    const of = { response_id: running.id, item_id, output_index: 0, content_index: 0 };
    const part = (text: string) =>
      isAudio ? { type: "audio", transcript: text } : { type: "text", text };
    await this.#send("response.created", { response });
    const started = { response_id: running.id, output_index: 0 };
    await this.#send("response.output_item.added", {
      ...started,
      item: { ...item("in_progress", ""), content: [] },
    });
    await this.#send("conversation.item.added", {
      previous_item_id: null,
      item: { ...item("in_progress", ""), content: [] },
    });
    await this.#send("response.content_part.added", { ...of, part: part("") });
    let said = "";
    let count = 0;
    for (const word of (this.#options().words ?? "Hello there friend").split(" ")) {
      if (running.canceled) break;
      const delta = said === "" ? word : ` ${word}`;
      said += delta;
      count++;
      if (isAudio) {
        await this.#send("response.output_audio_transcript.delta", { ...of, delta });
        await this.#send("response.output_audio.delta", { ...of, delta: speech(1) });
      } else await this.#send("response.output_text.delta", { ...of, delta });
    }
    if (isAudio) {
      await this.#send("response.output_audio.done", of);
      await this.#send("response.output_audio_transcript.done", { ...of, transcript: said });
    } else await this.#send("response.output_text.done", { ...of, text: said });
    await this.#send("response.content_part.done", { ...of, part: part(said) });
    const status = running.canceled ? "incomplete" : "completed";
    await this.#send("conversation.item.done", {
      previous_item_id: null,
      item: item(status, said),
    });
    await this.#send("response.output_item.done", { ...started, item: item(status, said) });
    const usage = usageOf(input, cached, { text: count, audio: isAudio ? count * 2 : 0 });
    this.#cached = input;
    this.#read = {
      text: input.text + count,
      audio: input.audio + (isAudio ? count * 2 : 0),
      image: input.image,
    };
    this.#current = undefined;
    const done = {
      ...response,
      status: running.canceled ? "cancelled" : "completed",
      status_details: running.canceled
        ? { type: "cancelled", reason: "client_cancelled" }
        : { type: "completed" },
      output: [item(status, said)],
      usage: this.#options().hidesUsage ? null : usage,
    };
    this.#to.responses.push({ id: running.id, status: done.status, usage: done.usage });
    await this.#send("response.done", { response: done });
    await this.#send("rate_limits.updated", {
      rate_limits: [{ name: "tokens", limit: 40_000, remaining: 39_000, reset_seconds: 1 }],
    });
  }
}

function usageOf(
  read: Counts,
  cached: Counts,
  made: { text: number; audio: number },
): RealtimeUsage {
  const input = read.text + read.audio + read.image;
  const output = made.text + made.audio;
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_token_details: {
      text_tokens: read.text,
      audio_tokens: read.audio,
      image_tokens: read.image,
      cached_tokens: cached.text + cached.audio + cached.image,
      cached_tokens_details: {
        text_tokens: cached.text,
        audio_tokens: cached.audio,
        image_tokens: cached.image,
      },
    },
    output_token_details: { text_tokens: made.text, audio_tokens: made.audio },
  };
}

const words = (text: string): number => text.split(/\s+/).filter(Boolean).length;

/** Merges objects, as `session.update` does. */
function merge(before: object, now: object): object {
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(now)) {
    const old = merged[name];
    merged[name] = isPlain(old) && isPlain(value) ? merge(old, value) : (value as unknown);
  }
  return merged;
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
