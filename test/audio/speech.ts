// Audio from text: the request is JSON, and the response is audio, streamed without JSON around it.
import {
  fail,
  type ClientHalf,
  type CommonRequest,
  type JsonObject,
  type Opt,
  type Protocol,
  type ServerHalf,
  type OperationSpec,
} from "tollgate/plugin";
import { refused, told } from "./parts.ts";

export type SpeechRequest = Readonly<
  CommonRequest & { operation: "recital"; input: string; voice?: Opt<string> }
>;
export interface Sound {
  readonly bytes: Buffer;
}

declare module "tollgate/plugin" {
  interface Operations {
    recital: { request: SpeechRequest; item: Sound };
  }
}

export const speechWork: OperationSpec<"recital"> = {
  name: "recital",
  noun: "a speech model",
  outputModality: "audio",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["characters"]],
  estimateUsage: ({ exactUsage }) => [
    [{ units: ["characters"], count: exactUsage.characters ?? 0 }],
  ],
  estimateMissingUsage: ({ usage }) => usage,
  pricingHint: ["{ characters: … }", "dollars a character"],
  priceExamples: [{ description: "a page", usage: { characters: 2000 } }],
  sampleRequest: (model) => ({
    operation: "recital",
    model,
    stream: true,
    input: "Hello",
    rest: {},
    ext: {},
  }),
};

const server: ServerHalf<"recital"> = {
  schema: {
    type: "object",
    required: ["model", "input"],
    properties: { model: { type: "string" }, input: { type: "string" }, voice: { type: "string" } },
  },
  analyze: ({ input }) => ({
    features: [],
    exactUsage: { characters: typeof input === "string" ? input.length : 0 },
  }),
  decodeRequest: ({ model, input, voice, ...rest }) => ({
    operation: "recital",
    model: model as string,
    stream: true,
    input: input as string,
    voice: voice as string | undefined,
    rest: rest as JsonObject,
    ext: {},
  }),
  contentType: () => "audio/basic",
  createEncoder: (write) => ({
    writeEvent(event) {
      if (event.type === "item") write((event.item as Sound).bytes);
    },
    // Audio cannot express an error, so the connection is closed.
    writeFault() {},
  }),
  encodeResponse: ({ items = [] }) => Buffer.concat(items.map((item) => (item as Sound).bytes)),
  encodeFault: told,
  ping: "",
};

const client: ClientHalf<"recital"> = {
  paths: { generate: "/audio/speech" },
  encodeRequest: ({ input, voice }, { model }) => ({ model, input, voice }),
  createDecoder(emit) {
    emit({ type: "start" });
    let index = 0;
    return {
      push: (bytes) => emit({ type: "item", index: index++, item: { bytes: Buffer.from(bytes) } }),
      end: () => emit({ type: "finish", reason: "stop" }),
    };
  },
  decodeResponse: () =>
    fail("upstream", "The provider's answer is no sound.", { code: "bad_answer" }),
  decodeFault: (status) => refused(status),
};

/** The last chunk waits until the call is billed: without it the audio is incomplete. */
const relay: NonNullable<ClientHalf<"recital">["createPassthrough"]> = (sink, _to, headers) => {
  sink.setContentType(headers["content-type"] ?? "application/octet-stream");
  let last: Buffer | undefined;
  return {
    isBetweenEvents: false,
    push(chunk) {
      sink.reportContent();
      if (last) sink.write(last);
      last = chunk;
    },
    end() {
      sink.reportFinish("stop");
      if (last) sink.write(last);
    },
    writeFault() {},
  };
};

export const speech = (passes = true): Protocol<"recital"> => ({
  id: "recital",
  operationSpec: speechWork,
  server,
  client: passes ? { ...client, createPassthrough: relay } : client,
});
