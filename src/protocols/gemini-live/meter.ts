// The meter of a connection of the Live API. The API does not number its responses, because only
// one response runs at a time. A response begins with the first output of the model, or when the client ends its turn, and
// ends with the usage report that the provider sends for it. Messages are forwarded unchanged,
// except that the first message gets the provider's name of the model.
import { fail } from "../../model/error.ts";
import type { RealtimeRequest } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import type {
  MeterContext,
  MeteredResponse,
  MeterSink,
  ResponseStart,
  SocketMessage,
  SocketMeter,
} from "../../plugin/socket.ts";
import { asCount, asList, asObject, asObjects, asText } from "../json-values.ts";
import { ConversationEstimate, estimateTextTokens } from "../realtime/conversation.ts";
import { PendingText } from "../realtime/pending-text.ts";
import { audioSeconds, member, objectMember, readBlob, readMessage } from "./message.ts";
import { readUsage } from "./usage.ts";

/** Tokens per second of audio that the model speaks. */
const SPOKEN_A_SECOND = 25;
/** Sample rate of the model's audio. */
const OUTPUT_RATE = 24_000;

const CLIENT_MESSAGES = ["setup", "clientContent", "realtimeInput", "toolResponse"] as const;

/** A response that the client requested. */
interface RequestedResponse {
  readonly response: MeteredResponse;
  readonly inputUsage: Usage;
}

/** A response that is running. */
interface OpenResponse extends RequestedResponse {
  seconds: number;
  textBytes: number;
  /** Whether the provider has ended its turn, so that only the usage report is missing. */
  hasEnded: boolean;
  /** Whether a text block was opened for `watch` hooks. */
  hasText: boolean;
}

export class GeminiLiveMeter implements SocketMeter {
  readonly #sink: MeterSink;
  readonly #to: MeterContext;
  readonly #conversation = new ConversationEstimate();
  readonly #pending = new PendingText();
  #isSetUp = false;
  #instructions = "";
  #maxOutput: number | undefined;
  #responses = 0;
  #requested: RequestedResponse | undefined;
  #open: OpenResponse | undefined;

  constructor(sink: MeterSink, to: MeterContext) {
    this.#sink = sink;
    this.#to = to;
  }

  readClientMessage(message: SocketMessage): Opt<SocketMessage> {
    const event = readMessage(message);
    const name = CLIENT_MESSAGES.find((one) => member(event, one) !== undefined);
    if (name === undefined)
      return fail(
        "invalid",
        `Unknown message. It must have one of these fields: ${CLIENT_MESSAGES.join(", ")}.`,
        { code: "unknown_message" },
      );
    if ((name === "setup") === this.#isSetUp)
      return fail(
        "invalid",
        this.#isSetUp
          ? 'Only the first message can be "setup". Open another connection for another model.'
          : 'The first message must be "setup".',
        { code: "unexpected_setup" },
      );
    const content = objectMember(event, name) ?? {};
    if (name === "setup") return this.#setUp(event, content);
    if (name === "clientContent") this.#readTurns(content);
    else if (name === "realtimeInput") this.#readInput(content);
    else this.#readToolResponses(content);
    return undefined;
  }

  readProviderMessage(message: SocketMessage): Opt<SocketMessage> {
    const event = readMessage(message);
    const content = objectMember(event, "serverContent");
    const usage = objectMember(event, "usageMetadata");
    if (content) this.#readContent(content);
    const call = objectMember(event, "toolCall");
    if (call) this.#readCalls(call);
    if (usage) this.#finish(usage);
    return undefined;
  }

  // The API cannot cancel a response. The connection has to be closed.
  encodeCancel(): undefined {
    return undefined;
  }

  /** Reads the setup, and replaces the client's name of the model. */
  #setUp(event: JsonObject, setup: JsonObject): SocketMessage {
    this.#isSetUp = true;
    const generation = objectMember(setup, "generationConfig");
    this.#maxOutput = asCount(member(generation, "maxOutputTokens"));
    this.#instructions = textOf(objectMember(setup, "systemInstruction"));
    const tools = member(setup, "tools");
    this.#conversation.addText(
      Buffer.byteLength(this.#instructions) +
        (tools === undefined ? 0 : Buffer.byteLength(JSON.stringify(tools))),
    );
    const prefix = /^(?:.*\/)?models\//.exec(asText(setup["model"]) ?? "")?.[0] ?? "models/";
    return JSON.stringify({
      ...event,
      setup: {
        ...setup,
        model: this.#to.model.includes("/") ? this.#to.model : prefix + this.#to.model,
      },
    });
  }

  #readTurns(content: JsonObject): void {
    for (const turn of asObjects(content["turns"])) {
      const text = textOf(turn);
      this.#pending.add(turn["role"] === "model" ? "assistant" : "user", text);
      this.#conversation.addText(Buffer.byteLength(text));
      for (const part of asObjects(turn["parts"])) this.#addBlob(objectMember(part, "inlineData"));
    }
    if (member(content, "turnComplete") === true) this.#ask();
  }

  #readInput(content: JsonObject): void {
    const text = asText(content["text"]);
    if (text !== undefined) {
      this.#pending.add("user", text);
      this.#conversation.addText(Buffer.byteLength(text));
    }
    for (const blob of asList(member(content, "mediaChunks"))) this.#addBlob(asObject(blob));
    this.#addBlob(objectMember(content, "audio"));
    this.#addBlob(objectMember(content, "video"));
  }

  #readToolResponses(content: JsonObject): void {
    for (const result of asObjects(member(content, "functionResponses"))) {
      const text = JSON.stringify(result["response"] ?? null);
      this.#pending.add("tool", text);
      this.#conversation.addText(Buffer.byteLength(text));
    }
    this.#ask();
  }

  #addBlob(raw: JsonObject | undefined): void {
    const blob = readBlob(raw);
    if (!blob) return;
    if (blob.mime.startsWith("audio/")) this.#conversation.addAudio(audioSeconds(blob));
    else this.#conversation.addImage();
  }

  /** The client ends its turn and asks for a response. Two turns in a row get one response. */
  #ask(): void {
    if (this.#requested === undefined || this.#requested.response.state === "ended")
      this.#requested = this.#begin();
  }

  #readContent(content: JsonObject): void {
    const turn = objectMember(content, "modelTurn");
    const transcript = asText(objectMember(content, "outputTranscription")?.["text"]);
    const inputTranscript = asText(objectMember(content, "inputTranscription")?.["text"]);
    if (inputTranscript !== undefined) this.#pending.addTranscript(inputTranscript);
    if (turn || transcript !== undefined) {
      const open = this.#running();
      for (const part of asObjects(turn?.["parts"])) this.#addPart(open, part);
      if (transcript !== undefined) this.#addOutputText(open, transcript);
      open.response.reportEstimate(estimateUsage(open));
    }
    const isOver =
      member(content, "turnComplete") === true || member(content, "interrupted") === true;
    if (isOver && this.#open) this.#open.hasEnded = true;
  }

  #addPart(open: OpenResponse, part: JsonObject): void {
    const text = asText(part["text"]);
    if (text !== undefined) this.#addOutputText(open, text);
    const blob = readBlob(objectMember(part, "inlineData"));
    if (!blob) return;
    open.seconds += audioSeconds(blob, OUTPUT_RATE);
    open.response.reportContent(0);
  }

  #addOutputText(open: OpenResponse, text: string): void {
    const bytes = Buffer.byteLength(text);
    open.textBytes += bytes;
    open.response.reportContent(bytes);
    if (!open.hasText)
      open.response.reportEvent({ type: "open", index: 0, block: { type: "text" } });
    open.hasText = true;
    open.response.reportEvent({ type: "delta", index: 0, text });
  }

  #readCalls(call: JsonObject): void {
    const open = this.#running();
    const bytes = Buffer.byteLength(JSON.stringify(call));
    open.textBytes += bytes;
    open.response.reportContent(bytes);
    open.response.reportEstimate(estimateUsage(open));
    open.hasEnded = true;
  }

  /**
   * Returns the running response, or else the response that the client requested. A request whose
   * reservation is not yet made has not reached the provider. The provider then began another
   * response because the user stopped speaking.
   */
  #running(): OpenResponse {
    if (this.#open?.hasEnded) this.#abandon(this.#open);
    if (this.#open) return this.#open;
    const requested = this.#requested?.response.state === "running" ? this.#requested : undefined;
    if (requested) this.#requested = undefined;
    const { response, inputUsage } = requested ?? this.#begin();
    response.reportStart(`${this.#to.id}-${++this.#responses}`);
    this.#open = {
      response,
      inputUsage,
      seconds: 0,
      textBytes: 0,
      hasEnded: false,
      hasText: false,
    };
    return this.#open;
  }

  /** Ends a response for which the provider never sent a usage report. It is billed as an estimate. */
  #abandon(open: OpenResponse): void {
    const { output = 0, audio_out: audio = 0 } = estimateUsage(open);
    this.#conversation.addOutput(output, audio);
    this.#close(open);
  }

  #begin(): RequestedResponse {
    const inputUsage = this.#conversation.expectedUsage;
    const response = this.#sink.beginResponse(this.#responseStart());
    response.reportEstimate(inputUsage);
    return { response, inputUsage };
  }

  #responseStart(): ResponseStart & { request: RealtimeRequest } {
    return {
      facts: {
        features: [],
        maxOutput: this.#maxOutput,
        expectedUsage: this.#conversation.expectedUsage,
        maxUsage: this.#conversation.maxUsage,
      },
      request: this.#pending.take(this.#to.clientModel, this.#instructions, this.#maxOutput),
    };
  }

  /** A usage report ends the response that it counts. */
  #finish(report: JsonObject): void {
    // The report of a response that has ended may follow it.
    const open = this.#open ?? this.#running();
    const usage = readUsage(report, this.#to.info.price);
    open.response.reportUsage({ type: "usage", usage });
    this.#conversation.replace(usage);
    this.#close(open);
  }

  #close(open: OpenResponse): void {
    this.#open = undefined;
    if (open.hasText) open.response.reportEvent({ type: "close", index: 0 });
    open.response.reportFinish("stop");
  }
}

function estimateUsage({ inputUsage, seconds, textBytes }: OpenResponse): Usage {
  const spoken = Math.ceil(seconds * SPOKEN_A_SECOND);
  return {
    ...inputUsage,
    output: estimateTextTokens(textBytes),
    ...(spoken > 0 && { audio_out: spoken }),
  };
}

const textOf = (content: JsonObject | undefined): string =>
  asObjects(content?.["parts"])
    .map((part) => asText(part["text"]) ?? "")
    .join("");
