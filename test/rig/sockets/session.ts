// One client with one WebSocket: it follows the script of its protocol, and cuts its connection after
// a frame if its plan says so. It keeps what it saw.
import { WebSocket } from "ws";
import { LIVE_PATH } from "../../kit/sockets/gemini-live-upstream.ts";
import { silence, speech } from "../../kit/sockets/realtime-upstream.ts";
import {
  liveCounts,
  realtimeCounts,
  responsesCounts,
  type Counts,
  type ProtocolName,
} from "./providers.ts";

type Message = { readonly type?: string; readonly [name: string]: any };

/** What a client saw of its session. */
export interface ClientView {
  frames: number;
  /** Responses that it asked for. */
  asked: number;
  /** Responses that began. */
  begun: number;
  /** Output tokens that it received, as the provider counts them. */
  output: number;
  /** Usage of each response that ended. */
  done: Counts[];
  /** Whether the client sends nothing any more, so that only the gateway ends the session. */
  isQuiet: boolean;
  /** Close code. 1006: the connection was cut. */
  code: number;
  reason: string;
}

type Send = (message: Message) => void;

/** Maximum output of a response. Without it, no budget of the rig covers a response. */
const MAX_OUTPUT = 8;

interface Script {
  /** Responses that the script has. */
  readonly responses: number;
  path(model: string): string;
  /** Sends the first messages. */
  open(send: Send, model: string): void;
  /** Sends the next messages. `done`: number of responses that have ended. `last`: end of the last. */
  next(done: number, send: Send, model: string, last: Message): void;
  isReady(message: Message): boolean;
  asks(message: Message): boolean;
  /** Whether a response begins with this message. `isOpen`: whether one has begun and not ended. */
  begins(message: Message, isOpen: boolean): boolean;
  output(message: Message): number;
  counts(message: Message): Counts[];
}

const createOf = (model: string, stream_id: string): Message => ({
  type: "response.create",
  model,
  store: false,
  max_output_tokens: MAX_OUTPUT,
  input: [{ role: "user", content: "Hi" }],
  stream_id,
});

export const SCRIPTS: Readonly<Record<ProtocolName, Script>> = {
  realtime: {
    responses: 3,
    path: (model) => `/v1/realtime?model=realtime/${model}`,
    open: (send) =>
      send({
        type: "session.update",
        session: { type: "realtime", max_output_tokens: MAX_OUTPUT },
      }),
    next(done, send) {
      if (done !== 1) return send({ type: "response.create" });
      send({ type: "input_audio_buffer.append", audio: speech(3) });
      send({ type: "input_audio_buffer.append", audio: silence(3) });
    },
    isReady: ({ type }) => type === "session.updated",
    asks: ({ type }) => type === "response.create",
    begins: ({ type }) => type === "response.created",
    // 100 ms of audio.
    output: ({ type }) => (type === "response.output_audio.delta" ? 2 : 0),
    counts: realtimeCounts,
  },
  live: {
    responses: 3,
    path: () => LIVE_PATH,
    open: (send, model) =>
      send({
        setup: {
          model: `models/live/${model}`,
          generationConfig: { responseModalities: ["AUDIO"], maxOutputTokens: MAX_OUTPUT },
        },
      }),
    next(done, send) {
      const turns = [{ role: "user", parts: [{ text: `Turn ${done}` }] }];
      send({ clientContent: { turns, turnComplete: true } });
    },
    isReady: (message) => message["setupComplete"] !== undefined,
    asks: (message) => message["clientContent"] !== undefined,
    begins: (message, isOpen) => !isOpen && message["serverContent"]?.modelTurn !== undefined,
    // 40 ms of audio.
    output: (message) => (message["serverContent"]?.modelTurn ? 1 : 0),
    counts: liveCounts,
  },
  responses: {
    responses: 4,
    path: () => "/v1/responses",
    // Two lanes, with two requests each.
    open(send, model) {
      for (const lane of ["a", "b", "a", "b"]) send(createOf(`responses/${model}`, lane));
    },
    next() {},
    isReady: () => false,
    asks: ({ type }) => type === "response.create",
    begins: ({ type }) => type === "response.created",
    output: ({ type }) => (type === "response.output_text.delta" ? 1 : 0),
    counts: responsesCounts,
  },
  pooled: {
    responses: 4,
    path: () => "/v1/responses",
    // Two lanes. The last two requests each continue a response.
    open(send, model) {
      for (const lane of ["a", "b"]) send(createOf(`pooled/${model}`, lane));
    },
    next(done, send, model, { stream_id, response }) {
      if (done > 2) return;
      const request = createOf(`pooled/${model}`, stream_id);
      send({ ...request, previous_response_id: response.id });
    },
    isReady: () => false,
    asks: ({ type }) => type === "response.create",
    begins: ({ type }) => type === "response.created",
    output: ({ type }) => (type === "response.output_text.delta" ? 1 : 0),
    counts: responsesCounts,
  },
};

interface ClientOptions {
  readonly url: string;
  readonly key: string;
  readonly protocol: ProtocolName;
  readonly model: string;
  /** Called after each frame. */
  onFrame(view: ClientView, socket: WebSocket): void;
}

/** A client does not wait longer for the gateway to close its connection after an error. */
const GIVE_UP_MS = 3_000;

/** Runs a session to its end. Resolves when the connection is closed. */
export async function runClient(of: ClientOptions): Promise<ClientView> {
  const script = SCRIPTS[of.protocol];
  const view: ClientView = {
    frames: 0,
    asked: 0,
    begun: 0,
    output: 0,
    done: [],
    isQuiet: false,
    code: 0,
    reason: "",
  };
  const path = script.path(of.model);
  const socket = new WebSocket(of.url.replace(/^http/, "ws") + path, {
    perMessageDeflate: false,
    headers: { authorization: `Bearer ${of.key}` },
  });
  const send: Send = (message) => {
    if (socket.readyState !== socket.OPEN || view.isQuiet) return;
    if (script.asks(message)) view.asked++;
    socket.send(JSON.stringify(message));
  };
  let failed = 0;
  const advance = (message: Message) => {
    const counts = script.counts(message);
    if (script.begins(message, view.begun > view.done.length)) view.begun++;
    view.output += script.output(message);
    view.done.push(...counts);
    // An error event, such as that of a spent budget, ends the session in a while.
    const isError = message.type === "error" || message.type === "response.failed";
    if (isError && failed++ === 0) setTimeout(() => socket.close(), GIVE_UP_MS).unref();
    if (view.done.length >= script.responses) socket.close();
    else if (script.isReady(message) || (counts.length > 0 && failed === 0))
      script.next(view.done.length, send, of.model, message);
  };
  socket.on("open", () => {
    script.open(send, of.model);
    of.onFrame(view, socket);
  });
  socket.on("message", (data: Buffer) => {
    view.frames++;
    advance(JSON.parse(data.toString()) as Message);
    of.onFrame(view, socket);
  });
  socket.on("error", () => {});
  return new Promise((resolve) => {
    socket.once("close", (code, reason) => {
      view.code = code;
      view.reason = reason.toString();
      resolve(view);
    });
  });
}
