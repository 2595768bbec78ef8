// Responses for every ordered pair of protocols keep their content, streaming or not, for any
// chunks. Each of our streams follows its protocol, by a checker that knows no codec.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectResponse, type ModelEvent, type Protocol } from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  splitChunks,
  decode,
  decodeWhole,
  encodeText,
} from "tollgate/testing";
import { anyAnswers } from "./generators/any-answer.ts";
import { answers, chunking } from "./generators/arbitrary.ts";
import { chats, TELL_ALL, upstreams } from "./generators/codecs.ts";
import { said } from "./generators/essence.ts";
import * as chat from "./wire/chat-completions.ts";
import * as gemini from "./wire/gemini.ts";
import * as messages from "./wire/messages.ts";
import * as responses from "./wire/responses.ts";
import { trialCount } from "../kit/law-effort.ts";

const WIRES: { readonly [id: string]: { stream(text: string): void; whole(body: any): void } } = {
  "chat-completions": {
    stream: (text) => chat.checkStream(text, "complete", true),
    whole: chat.checkWhole,
  },
  messages: {
    stream: (text) => messages.checkStream(text, "complete"),
    whole: messages.checkWhole,
  },
  responses: {
    stream: (text) => responses.checkStream(text, "complete"),
    whole: responses.checkWhole,
  },
  gemini: { stream: (text) => gemini.checkStream(text, "complete"), whole: gemini.checkWhole },
};
const names = Object.keys(upstreams);
const pairs = names.flatMap((a) => Object.keys(chats).map((b): [string, string] => [a, b]));

const to = (stream: boolean) => createResponseContext({ stream, body: TELL_ALL });
const streamed = ({ server }: Protocol<"chat">, events: readonly ModelEvent[]) =>
  encodeText(server as never, events, to(true));
const heard = (
  { client }: Protocol<"chat">,
  text: string,
  chunks: Parameters<typeof splitChunks>[1] = "whole",
) =>
  decode(
    client as never,
    splitChunks([Buffer.from(text)], chunks),
    createCallContext({ stream: true }),
  );
const inOne = ({ server, client }: Protocol<"chat">, events: readonly ModelEvent[]) => {
  const body = server!.encodeResponse(collectResponse(events), to(false));
  return {
    body,
    events: decodeWhole(client as never, Buffer.from(JSON.stringify(body)), createCallContext()),
  };
};

const RUNS = trialCount(150);

describe.each(names)("a response in %s", (name) => {
  const codec = upstreams[name]!;
  const any = answers({ interleaved: true, refusals: true });

  it.runIf(name in WIRES)("follows the protocol's grammar, streaming and non-streaming", () => {
    fc.assert(
      fc.property(anyAnswers(), (events) => {
        WIRES[name]!.stream(streamed(codec, events));
        WIRES[name]!.whole(JSON.parse(JSON.stringify(inOne(codec, events).body)));
      }),
      { numRuns: RUNS },
    );
  });

  it("has the original content, streaming and non-streaming", () => {
    fc.assert(
      fc.property(any, (events) => {
        const expected = said(collectResponse(events));
        expect(said(collectResponse(heard(codec, streamed(codec, events))))).toEqual(expected);
        expect(said(collectResponse(inOne(codec, events).events))).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });

  it("gives the same events for any chunks", () => {
    fc.assert(
      fc.property(any, chunking, (events, chunks) => {
        const text = streamed(codec, events);
        expect(heard(codec, text, chunks)).toEqual(heard(codec, text));
      }),
      { numRuns: RUNS },
    );
  });

  it("is never complete if truncated", () => {
    fc.assert(
      fc.property(any, fc.nat(), (events, at) => {
        const bytes = Buffer.from(streamed(codec, events));
        let got: ModelEvent[];
        try {
          got = decode(
            codec.client as never,
            [bytes.subarray(0, at % bytes.length)],
            createCallContext({ stream: true }),
          );
        } catch {
          return;
        }
        const { usage: _, ...all } = said(collectResponse(events));
        expect(said(collectResponse(got))).toMatchObject(all);
      }),
      { numRuns: RUNS },
    );
  });
});

describe.each(pairs)("a response from %s to %s", (from, into) => {
  it("has the same content and counts", () => {
    fc.assert(
      fc.property(answers({ refusals: true }), (events) => {
        const first = heard(upstreams[from]!, streamed(upstreams[from]!, events));
        const again = heard(chats[into]!, streamed(chats[into]!, first));
        expect(said(collectResponse(again))).toEqual(said(collectResponse(events)));
        expect(said(collectResponse(inOne(chats[into]!, first).events))).toEqual(
          said(collectResponse(events)),
        );
      }),
      { numRuns: RUNS },
    );
  });
});
