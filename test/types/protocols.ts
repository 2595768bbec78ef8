// Protocols: pure codecs in two halves.
import {
  chatOperation,
  defineProvider,
  type ResponseContext,
  type CallContext,
  type ChatRequest,
  type ClientHalf,
  type Decoder,
  type Encoder,
  type Fault,
  type ImageRequest,
  type Json,
  type JsonObject,
  type ModelInfo,
  type ModelRequest,
  type Protocol,
  type PassthroughStream,
  type PassthroughSink,
  type ServerHalf,
} from "tollgate/plugin";
import { parseError, fitName, parseToolArguments } from "tollgate/protocols/codec";
import { claude, messages } from "tollgate/protocols/messages";
import { is, type Same } from "./same.ts";

declare const client: ClientHalf<"chat">;
declare const server: ServerHalf<"chat">;
declare const encoder: Encoder;
declare const of: CallContext;
declare const request: ChatRequest;
declare const image: ImageRequest;

// ── either half may be missing ──
export const onlyServer: Protocol<"chat"> = { id: "x", operationSpec: chatOperation, server };
export const onlyClient: Protocol<"chat"> = { id: "x", operationSpec: chatOperation, client };
// @ts-expect-error  a kind is one of those there are
export const wrongKind: Protocol = { id: "x", operationSpec: { ...chatOperation, name: "dance" } };
is<Same<ModelRequest<"image">, ImageRequest>>();

// ── a conversation is what its turns have in common ──
export const conversing: ServerHalf<"chat"> = {
  ...server,
  conversationKey: (body) => ({ id: "a", prefix: [body["system"], undefined, "x"] }),
};
// @ts-expect-error  its beginning is a list of parts
export const partless: ServerHalf<"chat"> = { ...server, conversationKey: () => ({ prefix: "x" }) };
// @ts-expect-error  a name alone is no beginning
export const nameOnly: ServerHalf<"chat"> = { ...server, conversationKey: () => ({ id: "a" }) };

// ── an error's end is a cut, or it is any other end ──
export const cutting: ServerHalf<"chat"> = { ...server, closeOnError: true };
// @ts-expect-error  absent says that it is none
export const uncut: ServerHalf<"chat"> = { ...server, closeOnError: false };
// ── what is known of a model may be unknown ──
declare const answering: ResponseContext;
// @ts-expect-error  it is looked for first
export const unseen = answering.info.pricing;
is<Same<ResponseContext["info"], ModelInfo | undefined>>();

// ── what only one account can read ──
export const binding: ClientHalf<"chat"> = {
  ...client,
  accountBound: {
    errorCodes: ["foreign"],
    strip: (out, call) => (out.remove("x"), call.reportLoss("x", "dropped")),
  },
};
const later = async () => {};
// @ts-expect-error  nothing waits for it
export const bindsLater: ClientHalf<"chat">["accountBound"] = { errorCodes: [], strip: later };
// @ts-expect-error  it says how it is left out
export const bindsOnly: ClientHalf<"chat">["accountBound"] = { errorCodes: ["foreign"] };

// ── a half makes what its kind is ──
client.encodeRequest(request, of);
// @ts-expect-error  a chat codec takes no image request
client.encodeRequest(image, of);
export const asyncRequest: ClientHalf<"chat"> = {
  ...client,
  // @ts-expect-error  a codec does not wait
  encodeRequest: async () => ({}),
};
export const asyncPrepare: ClientHalf<"chat"> = {
  ...client,
  // @ts-expect-error  nor before sending
  prepare: async () => {},
};
export const pathless: ClientHalf<"chat"> = {
  ...client,
  // @ts-expect-error  there is always a path to generate
  paths: { count: "/count" },
};

// ── losses are declared in words that exist ──
of.reportLoss("seed", "dropped");
of.reportLoss("seed", "approximated", "clamped");
// @ts-expect-error  a loss is dropped or approximated
of.reportLoss("seed", "ignored");

// ── events ──
encoder.writeEvent({ type: "start" });
encoder.writeEvent({
  type: "open",
  index: 0,
  block: { type: "call", id: "a", name: "b", tool: "function" },
});
encoder.writeEvent({
  type: "open",
  index: 0,
  // @ts-expect-error  a call has an id
  block: { type: "call", name: "b", tool: "function" },
});
// @ts-expect-error  a delta belongs to a block
encoder.writeEvent({ type: "delta", text: "x" });
// @ts-expect-error  no such reason
encoder.writeEvent({ type: "finish", reason: "done" });
// @ts-expect-error  errors are thrown, not emitted
encoder.writeEvent({ type: "error", message: "x" });

// ── bytes are Buffers, in and out ──
export const decoder: Decoder = {
  push(chunk) {
    is<Same<typeof chunk, Buffer>>();
  },
  end() {},
};
export function relay(sink: PassthroughSink): PassthroughStream {
  sink.write(Buffer.from("x"));
  // @ts-expect-error  text is not bytes
  sink.write("x");
  sink.reportUsage({ type: "usage", usage: { input: 1 } });
  // @ts-expect-error  a relay says whether a ping may go out now
  return { ...decoder, writeFault() {} };
}

// ── what is built may hold undefined; what is read says so ──
export const built: JsonObject = { seed: undefined, list: [{ deep: undefined }] };
export function read(body: JsonObject): void {
  const seed = body["seed"];
  is<Same<typeof seed, Json | undefined>>();
  // @ts-expect-error  it may be anything, or absent
  seed.toFixed();
  // @ts-expect-error  read-only
  body["seed"] = 1;
}

// ── a provider of one kind of protocol ──
export const provider = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    endpoints: [
      {
        protocol: onlyClient,
        base: "https://x",
        auth: "none",
        streaming: "always",
        prepare(out, call) {
          out.set("model", call.model);
        },
        paths: { generate: (asked) => `/models/${asked.model}` },
      },
    ],
  }),
});
export const sometimes = defineProvider({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    // @ts-expect-error  asked, always or never
    endpoints: [{ protocol: onlyClient, base: "https://x", auth: "none", streaming: "sometimes" }],
  }),
});

// ── what a codec of a third party is made with ──
is<Same<ReturnType<typeof parseToolArguments>, JsonObject | undefined>>();
is<Same<ReturnType<typeof parseError>, Fault>>();
export const onClaude: Protocol<"chat"> = messages({ ...claude, countsTokens: false });
// @ts-expect-error  a name is made for a wire, whose longest is said
export const unbounded: string = fitName("x");
