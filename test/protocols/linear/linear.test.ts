// Linear: for any data of a client or an upstream, every half of every codec works in proportion to
// its bytes, needs a stack for at most 64 levels, and throws nothing but faults.
import { describe, it } from "vitest";
import {
  collectResponse,
  type CallContext,
  type Body,
  type JsonObject,
  type Operation,
  type Protocol,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import {
  createResponseContext,
  createCallContext,
  splitChunks,
  decodeWhole,
  createOutgoing,
  encodeOutgoing,
} from "tollgate/testing";
import { scan } from "../../../src/lib/json/json-scanner.ts";
import { upstreamAnswers } from "./answers.ts";
import { eventShapes } from "./events.ts";
import { linear } from "./growth.ts";
import { bodies, times } from "./requests.ts";

/**
 * Pieces: enough to distinguish quadratic from linear, and few enough for every run.
 * `npm run rig linear` uses more.
 */
const N = Number(process.env["LINEAR_PIECES"] ?? 2000);

const chats: { readonly [id: string]: Protocol<"chat"> } = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
  gemini: gemini(),
};

/** A backend with all unusual traits: each of them causes a pass over the request. */
const odd = chatCompletions({
  customTools: false,
  contentParts: false,
  strictTools: false,
  developerRole: false,
  toolIds: "alnum9",
  thinkTags: true,
  reasoning: { control: "effort", echo: "reasoning_details", echoRequired: true },
  renameFields: { max_completion_tokens: "max_tokens" },
});

const targets: readonly (readonly [name: string, Protocol<"chat">, Partial<CallContext>])[] = [
  ...Object.entries(chats).map(([id, protocol]) => [id, protocol, {}] as const),
  ["an odd imitator", odd, {}],
  ["an early gemini", gemini(), { model: "gemini-2.0-flash" }],
];

describe.each(Object.keys(bodies))("a request of %s", (id) => {
  const { server, client } = chats[id]!;
  describe.each(Object.keys(bodies[id]!))("%s", (shape) => {
    const made = (n: number): JsonObject => bodies[id]![shape]!(n);
    it("is scanned", () => {
      linear((n) => {
        const bytes = Buffer.from(JSON.stringify(made(n)));
        return () => scan(bytes);
      }, N);
    });
    it("is analyzed", () => {
      linear((n) => {
        const body = made(n);
        return () => server!.analyze(body);
      }, N);
    });
    it("is prepared", () => {
      linear((n) => {
        const body = made(n);
        return () => client!.prepare?.(createOutgoing(body), createCallContext());
      }, N);
    });
    it("is decoded", () => {
      linear((n) => {
        const body = made(n);
        return () => server!.decodeRequest(body, "generate");
      }, N);
    });
    it.each(targets)("is encoded for %s", (_name, { client: target }, of) => {
      linear((n) => {
        const request = server!.decodeRequest(made(n), "generate");
        return () => JSON.stringify(encodeOutgoing(target!, request, createCallContext(of)).body);
      }, N);
    });
  });
});

const decoders: { readonly [id: string]: readonly Protocol<Operation>[] } = {
  "chat-completions": [chats["chat-completions"]!, odd],
  messages: [chats["messages"]!],
  responses: [chats["responses"]!],
  gemini: [gemini(), geminiImage()],
  images: [images()],
};

const ways = ["pieces", "whole"] as const;

describe.each(Object.keys(upstreamAnswers))("a response of %s", (id) => {
  const { streams, wholes } = upstreamAnswers[id]!;
  describe.each(Object.keys(streams))("streamed, %s,", (shape) => {
    describe.each(ways)("truncated: %s", (how) => {
      it.each(decoders[id]!.map((protocol) => [protocol.id, protocol] as const))(
        "is decoded by %s",
        (_id, { client }) => {
          linear((n) => {
            const chunks = splitChunks(streams[shape]!(n), how);
            return () => {
              const decoder = client!.createDecoder(
                () => {},
                createCallContext({ stream: true }),
                {},
              );
              for (const chunk of chunks) decoder.push(chunk);
              decoder.end();
            };
          }, N);
        },
      );
      const { createPassthrough } = decoders[id]![0]!.client!;
      it.runIf(createPassthrough)("is forwarded", () => {
        linear((n) => {
          const chunks = splitChunks(streams[shape]!(n), how);
          return () => passed(createPassthrough!, chunks, true);
        }, N);
      });
    });
  });
  describe.each(Object.keys(wholes))("non-streaming, %s,", (shape) => {
    it.each(decoders[id]!.map((protocol) => [protocol.id, protocol] as const))(
      "is decoded by %s",
      (_id, { client }) => {
        linear((n) => {
          const body = wholes[shape]!(n);
          return () => decodeWhole(client!, body, createCallContext());
        }, N);
      },
    );
    const { createPassthrough } = decoders[id]![0]!.client!;
    it.runIf(createPassthrough)("is forwarded", () => {
      linear((n) => {
        const body = wholes[shape]!(n);
        return () => passed(createPassthrough!, [body], false);
      }, N);
    });
  });
});

type Relaying = NonNullable<NonNullable<Protocol["client"]>["createPassthrough"]>;

function passed(relay: Relaying, chunks: readonly Buffer[], stream: boolean): void {
  const tap = relay(
    {
      setContentType() {},
      write() {},
      reportContent() {},
      reportStart() {},
      reportUsage() {},
      reportFinish: () => ({ input: 1, output: 1 }),
    },
    createResponseContext({ stream, body: { stream_options: { include_usage: true } } }),
    {},
  );
  for (const chunk of chunks) tap.push(chunk);
  tap.end();
}

/** Declared tools of the client: each of their names may be looked up. */
const declaring: { readonly [id: string]: (n: number) => Body } = {
  "chat-completions": (n) => ({
    tools: times(n, (i) => ({ type: "function", function: { name: `f${i}` } })),
    stream_options: { include_usage: true },
  }),
  messages: (n) => ({ tools: times(n, (i) => ({ name: `f${i}` })) }),
  responses: (n) => ({ tools: times(n, (i) => ({ type: "function", name: `f${i}` })), input: "x" }),
  gemini: (n) => ({
    tools: [{ functionDeclarations: times(n, (i) => ({ name: `f${i}` })) }],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
  }),
};

describe.each(Object.keys(chats))("a response for %s", (id) => {
  const { server } = chats[id]!;
  describe.each(Object.keys(eventShapes))("%s", (shape) => {
    it("is encoded as a stream", () => {
      linear((n) => {
        const events = eventShapes[shape]!(n);
        const body = declaring[id]!(n);
        return () => {
          const encoder = server!.createEncoder(
            () => {},
            createResponseContext({ stream: true, body }),
          );
          for (const event of events) encoder.writeEvent(event);
        };
      }, N);
    });
    it("is encoded as one body", () => {
      linear((n) => {
        const events = eventShapes[shape]!(n);
        const body = declaring[id]!(n);
        return () =>
          JSON.stringify(
            server!.encodeResponse(collectResponse(events), createResponseContext({ body })),
          );
      }, N);
    });
  });
});
