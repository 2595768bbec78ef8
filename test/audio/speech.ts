// Sound from words: JSON comes in, and sound goes out as it comes, without a word of JSON around it.
import {
  fail,
  type ClientHalf,
  type CommonRequest,
  type JsonObject,
  type Opt,
  type Protocol,
  type ServerHalf,
  type Work,
} from "tollgate/plugin";
import { refused, told } from "./parts.ts";

export type SpeechRequest = Readonly<
  CommonRequest & { kind: "recital"; input: string; voice?: Opt<string> }
>;
export interface Sound {
  readonly bytes: Buffer;
}

declare module "tollgate/plugin" {
  interface Works {
    recital: { request: SpeechRequest; item: Sound };
  }
}

export const speechWork: Work<"recital"> = {
  kind: "recital",
  noun: "a speech model",
  modality: "audio",
  listed: true,
  written: false,
  whole: [["characters"]],
  most: ({ counts }) => [[{ units: ["characters"], count: counts.characters ?? 0 }]],
  guess: ({ usage }) => usage,
  pricing: ["{ characters: … }", "dollars a character"],
  examples: [{ about: "a page", usage: { characters: 2000 } }],
  sample: (model) => ({ kind: "recital", model, stream: true, input: "Hello", rest: {}, ext: {} }),
};

const server: ServerHalf<"recital"> = {
  schema: {
    type: "object",
    required: ["model", "input"],
    properties: { model: { type: "string" }, input: { type: "string" }, voice: { type: "string" } },
  },
  survey: ({ input }) => ({
    features: [],
    counts: { characters: typeof input === "string" ? input.length : 0 },
  }),
  request: ({ model, input, voice, ...rest }) => ({
    kind: "recital",
    model: model as string,
    stream: true,
    input: input as string,
    voice: voice as string | undefined,
    rest: rest as JsonObject,
    ext: {},
  }),
  type: () => "audio/basic",
  stream: (write) => ({
    event(event) {
      if (event.type === "item") write((event.item as Sound).bytes);
    },
    // Sound has no words for it: the connection is all that can say it.
    fail() {},
  }),
  whole: ({ items = [] }) => Buffer.concat(items.map((item) => (item as Sound).bytes)),
  fault: told,
  ping: "",
};

const client: ClientHalf<"recital"> = {
  paths: { generate: "/audio/speech" },
  request: ({ input, voice }, { model }) => ({ model, input, voice }),
  stream(emit) {
    emit({ type: "start" });
    let index = 0;
    return {
      push: (bytes) => emit({ type: "item", index: index++, item: { bytes: Buffer.from(bytes) } }),
      end: () => emit({ type: "finish", reason: "stop" }),
    };
  },
  whole: () => fail("upstream", "The provider's answer is no sound.", { code: "bad_answer" }),
  fault: (status) => refused(status),
};

/** The last piece waits until the call is billed: without it the sound is not whole. */
const relay: NonNullable<ClientHalf<"recital">["relay"]> = (sink, _to, headers) => {
  sink.type(headers["content-type"] ?? "application/octet-stream");
  let last: Buffer | undefined;
  return {
    between: false,
    push(chunk) {
      sink.content();
      if (last) sink.bytes(last);
      last = chunk;
    },
    end() {
      sink.finish("stop");
      if (last) sink.bytes(last);
    },
    fail() {},
  };
};

export const speech = (passes = true): Protocol<"recital"> => ({
  id: "recital",
  work: speechWork,
  server,
  client: passes ? { ...client, relay } : client,
});
