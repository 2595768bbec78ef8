// The meter of a Realtime connection. It reads every event of both sides, and begins and ends
// responses and transcriptions. Events are forwarded unchanged, with three exceptions. The model of
// a session update gets the provider's name. The provider's rate limits are dropped, because they
// belong to the operator's account. An event that could change the bill without being metered is
// rejected.
import { fail } from "../../model/error.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import type {
  MeterContext,
  MeteredResponse,
  MeterSink,
  ResponseStart,
  SocketMessage,
  SocketMeter,
} from "../../plugin/socket.ts";
import { asNumber, asObject, asObjects, asText, parseObject } from "../json-values.ts";
import { decodedLength } from "./audio-format.ts";
import { ConversationEstimate } from "./conversation.ts";
import { checkGranted, checkReported } from "./granted-session.ts";
import { PendingText, readItem } from "./pending-text.ts";
import { Responses } from "./responses.ts";
import {
  checkPrivacy,
  DEFAULT_SETTINGS,
  namedTranscriptions,
  readMaxOutput,
  readSettings,
  textBytes,
} from "./session-settings.ts";
import { Transcriptions } from "./transcriptions.ts";

/** Events that a client may send, of the released API and of its beta. */
const CLIENT_EVENTS: ReadonlySet<string> = new Set([
  "session.update",
  "transcription_session.update",
  "input_audio_buffer.append",
  "input_audio_buffer.commit",
  "input_audio_buffer.clear",
  "output_audio_buffer.clear",
  "conversation.item.create",
  "conversation.item.retrieve",
  "conversation.item.truncate",
  "conversation.item.delete",
  "response.create",
  "response.cancel",
]);

export class RealtimeMeter implements SocketMeter {
  readonly #sink: MeterSink;
  readonly #to: MeterContext;
  readonly #responses = new Responses();
  readonly #transcriptions: Transcriptions;
  readonly #conversation = new ConversationEstimate();
  readonly #pending = new PendingText();
  #settings = DEFAULT_SETTINGS;
  /** Model that the provider reported when the session began. */
  #reportedModel: string | undefined;
  /** Seconds of audio that the client sent and that are not yet part of the conversation. */
  #uncommittedSeconds = 0;
  #speechStartMs: number | undefined;
  #speechEndMs: number | undefined;
  /** Whether the provider has not yet applied the settings of the client's credential. */
  #isOpening = false;
  /** Whether the client sends its events to the provider itself, as in a call. */
  #isObserving = true;

  constructor(sink: MeterSink, to: MeterContext) {
    this.#sink = sink;
    this.#to = to;
    this.#transcriptions = new Transcriptions(sink);
  }

  encodeOpening(): Opt<SocketMessage> {
    const granted = this.#to.session;
    this.#isObserving = false;
    if (!granted) return undefined;
    this.#isOpening = true;
    const { model, ...settings } = granted;
    // A session that only transcribes has no model.
    const session = granted["type"] === "transcription" ? settings : { ...settings, model };
    const event = { type: "session.update", event_id: OPENING_EVENT, session };
    return this.#updateSession(event) ?? JSON.stringify(event);
  }

  readClientMessage(message: SocketMessage): Opt<SocketMessage> {
    if (typeof message !== "string")
      return fail("invalid", "Binary messages are not supported. Send each event as JSON text.", {
        code: "invalid_message",
      });
    const event = parseObject(message);
    const type = asText(event?.["type"]);
    if (!event || type === undefined)
      return fail("invalid", 'The message is not a JSON object with a "type".', {
        code: "invalid_message",
        param: "type",
      });
    if (!CLIENT_EVENTS.has(type))
      return fail(
        "invalid",
        `Unknown event type "${type.slice(0, 64)}". Supported types: ${[...CLIENT_EVENTS].join(", ")}.`,
        { code: "unknown_event", param: "type" },
      );
    return this.#readClientEvent(type, event);
  }

  readProviderMessage(message: SocketMessage): Opt<SocketMessage | null> {
    const event = parseObject(typeof message === "string" ? message : message.toString());
    const type = asText(event?.["type"]);
    if (!event || type === undefined) return undefined;
    if (type === "rate_limits.updated") return null;
    if (type.startsWith("response.")) this.#readResponseEvent(type, event);
    else this.#readSessionEvent(type, event);
    return this.#isOpening ? this.#readOpening(type, event) : undefined;
  }

  /**
   * Reads an event that arrives before the settings of the client's credential apply. The client
   * receives `session.created` only with these settings.
   */
  #readOpening(type: string, event: JsonObject): Opt<SocketMessage | null> {
    if (type === "session.created") return null;
    if (type === "session.updated") {
      this.#isOpening = false;
      return JSON.stringify({ ...event, type: "session.created" });
    }
    const error = type === "error" ? asObject(event["error"]) : undefined;
    // The first error without a cause is caused by the first event.
    if (error && (error["event_id"] ?? OPENING_EVENT) === OPENING_EVENT)
      fail("invalid", `The provider rejected the session: ${asText(error["message"]) ?? ""}`, {
        code: "session_rejected",
        param: asText(error["param"]),
      });
    return undefined;
  }

  encodeCancel(response: MeteredResponse): Opt<SocketMessage> {
    const id = this.#responses.idOf(response);
    return id === undefined
      ? undefined
      : JSON.stringify({ type: "response.cancel", response_id: id });
  }

  #readClientEvent(type: string, event: JsonObject): Opt<SocketMessage> {
    switch (type) {
      case "session.update":
      case "transcription_session.update":
        return this.#updateSession(event);
      case "input_audio_buffer.append":
        this.#uncommittedSeconds += this.#secondsOf(asText(event["audio"]) ?? "");
        return undefined;
      case "input_audio_buffer.clear":
        this.#uncommittedSeconds = 0;
        return undefined;
      case "conversation.item.create":
        this.#addItem(asObject(event["item"]) ?? {});
        return undefined;
      case "response.create":
        this.#askForResponse(event);
        return undefined;
      default:
        return undefined;
    }
  }

  /** Checks the settings of a session, and replaces the client's name of the model. */
  #updateSession(event: JsonObject): Opt<SocketMessage> {
    const session = asObject(event["session"]) ?? {};
    checkPrivacy(session, this.#to.privacy);
    if (this.#to.session) checkGranted(session, this.#to.session);
    for (const transcription of namedTranscriptions(session)) this.#sink.checkModel(transcription);
    this.#conversation.addText(textBytes(session));
    const { model } = session;
    if (model === undefined || model === this.#to.model) return undefined;
    if (model !== this.#to.clientModel)
      fail(
        "invalid",
        `The model of this connection is "${this.#to.clientModel}" and cannot be changed. Open another connection for another model.`,
        { code: "model_fixed", param: "session.model" },
      );
    return JSON.stringify({ ...event, session: { ...session, model: this.#to.model } });
  }

  #addItem(item: JsonObject): void {
    const { role, text, audio, images } = readItem(item);
    this.#pending.add(role, text);
    this.#conversation.addText(Buffer.byteLength(text));
    for (const sound of audio) this.#conversation.addAudio(this.#secondsOf(sound));
    for (let i = 0; i < images; i++) this.#conversation.addImage();
  }

  #askForResponse(event: JsonObject): void {
    const settings = asObject(event["response"]) ?? {};
    checkPrivacy(settings, this.#to.privacy);
    if (this.#to.session) checkGranted(settings, this.#to.session);
    this.#responses.checkLimit();
    this.#conversation.addText(textBytes(settings));
    for (const item of asObjects(settings["input"])) this.#addItem(item);
    const inputUsage = this.#conversation.expectedUsage;
    const response = this.#sink.beginResponse(
      this.#responseStart(
        readMaxOutput(settings, this.#settings.maxOutput),
        asText(settings["instructions"]) ?? this.#settings.instructions,
      ),
    );
    this.#responses.addRequested({ response, eventId: asText(event["event_id"]), inputUsage });
  }

  #responseStart(maxOutput: number | undefined, instructions: string): ResponseStart {
    return {
      facts: {
        features: [],
        maxOutput,
        expectedUsage: this.#conversation.expectedUsage,
        maxUsage: this.#conversation.maxUsage,
      },
      request: this.#pending.take(this.#to.clientModel, instructions, maxOutput),
    };
  }

  #readResponseEvent(type: string, event: JsonObject): void {
    if (type === "response.created" || type === "response.done") {
      const report = asObject(event["response"]) ?? {};
      const id = asText(report["id"]) ?? "";
      const running = this.#responses.start(
        id,
        () => this.#sink.beginResponse(this.#spokenStart(report)),
        this.#conversation.expectedUsage,
      );
      this.#checkReported(report);
      if (type === "response.done")
        this.#responses.finish(running, report, this.#conversation, this.#settings.outputRate);
    } else this.#responses.progress(type, event, this.#settings.outputRate);
  }

  #spokenStart(report: JsonObject): ResponseStart {
    return this.#responseStart(
      readMaxOutput(report, this.#settings.maxOutput),
      this.#settings.instructions,
    );
  }

  #readSessionEvent(type: string, event: JsonObject): void {
    switch (type) {
      case "session.created":
      case "session.updated":
      case "transcription_session.created":
      case "transcription_session.updated":
        this.#readSession(type, asObject(event["session"]) ?? {});
        break;
      case "input_audio_buffer.speech_started":
        this.#speechStartMs = asNumber(event["audio_start_ms"]);
        break;
      case "input_audio_buffer.speech_stopped":
        this.#speechEndMs = asNumber(event["audio_end_ms"]);
        break;
      case "input_audio_buffer.committed":
        this.#commitAudio(asText(event["item_id"]) ?? "");
        break;
      case "conversation.item.input_audio_transcription.completed":
        this.#transcriptions.finish(event, this.#settings.transcription);
        this.#pending.addTranscript(asText(event["transcript"]) ?? "");
        break;
      case "conversation.item.input_audio_transcription.failed":
        this.#transcriptions.fail(event);
        break;
      case "error":
        this.#responses.refuse(asObject(event["error"]) ?? {});
        break;
    }
  }

  #readSession(type: string, session: JsonObject): void {
    const model = asText(session["model"]);
    if (model !== undefined) {
      this.#reportedModel ??= model;
      if (model !== this.#reportedModel)
        fail("upstream", "The provider changed the model of the session.");
    }
    // Text that the provider adds itself, such as its default instructions.
    if (this.#settings === DEFAULT_SETTINGS) this.#conversation.addText(textBytes(session));
    this.#settings = readSettings(session, this.#settings);
    if (type === "session.updated") this.#checkReported(session);
  }

  /** Throws the fault for the client of a call if it exceeded the settings of its credential. */
  #checkReported(settings: JsonObject): void {
    if (this.#isObserving && this.#to.session) checkReported(settings, this.#to.session);
  }

  /**
   * Adds the audio of the client's turn to the conversation: the whole audio, or the part with
   * speech.
   */
  #commitAudio(item: string): void {
    const [start, end] = [this.#speechStartMs, this.#speechEndMs];
    const seconds =
      start !== undefined && end !== undefined && end >= start
        ? Math.min((end - start) / 1_000, MAX_SECONDS)
        : this.#uncommittedSeconds;
    this.#uncommittedSeconds = 0;
    this.#speechStartMs = this.#speechEndMs = undefined;
    this.#conversation.addAudio(seconds);
    const { transcription } = this.#settings;
    if (transcription !== undefined) this.#transcriptions.start(item, transcription, seconds);
  }

  #secondsOf(base64: string): number {
    return decodedLength(base64) / this.#settings.inputRate;
  }
}

/** ID of the event that applies the settings of the client's credential. */
const OPENING_EVENT = "event_opening";

/** Longest audio of one turn: providers end a session after an hour. */
const MAX_SECONDS = 3_600;
