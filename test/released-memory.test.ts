// A decoder or a relay releases what it has read: of a stream whose chunks never end with an event,
// only the incomplete event stays in memory. This file has a process of its own, because a collection
// takes long in one that other files have filled.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { createResponseContext, createCallContext } from "tollgate/testing";
import type { Protocol } from "tollgate/plugin";
import { until } from "./kit/wait.ts";
import { upstreams } from "./protocols/generators/codecs.ts";
import { NIGHTLY } from "./kit/law-effort.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** A repeatable event of each protocol. */
const EVENTS: { readonly [wire: string]: object } = {
  "chat-completions": { id: "c", object: "chat.completion.chunk", model: "m", choices: [] },
  messages: { type: "ping" },
  responses: { type: "response.in_progress", response: { id: "r" } },
  gemini: { responseId: "g", candidates: [] },
  images: { type: "later" },
  "gemini-image": { responseId: "g", candidates: [] },
};
const WIRES: { readonly [wire: string]: Protocol<any> } = {
  ...upstreams,
  images: images(),
  "gemini-image": geminiImage(),
};
const MIB = 1024 * 1024;
const TIMES = NIGHTLY ? 48 : 24;

const READERS = Object.entries(WIRES).flatMap(([wire, { client }]) => {
  const decoder = () =>
    client!.createDecoder(() => {}, createCallContext(), { "content-type": "text/event-stream" });
  const sink = {
    write() {},
    reportContent() {},
    reportStart() {},
    reportUsage() {},
    reportFinish: () => ({}),
  };
  const relay = () =>
    client!.createPassthrough!(sink as never, createResponseContext({ stream: true }), {});
  return [
    [`${wire}, decoded`, wire, decoder] as const,
    ...(client!.createPassthrough ? [[`${wire}, passthrough`, wire, relay] as const] : []),
  ];
});

describe("after a long stream", () => {
  it.each(READERS)("%s: completed parts are not retained", async (_, wire, open) => {
    const event = `data: ${JSON.stringify({ ...EVENTS[wire], more: "x".repeat(MIB / 2) })}\n\n`;
    const reader: { push(chunk: Buffer): void } = open();
    const half = event.length / 2;
    // From the middle of one event to the middle of the next one.
    const chunk = event.slice(half) + event.slice(0, half);
    reader.push(Buffer.from(event.slice(0, half)));
    collect();
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < TIMES; i++) reader.push(Buffer.from(chunk));
    // Garbage is freed concurrently.
    await until(() => {
      collect();
      return process.memoryUsage().arrayBuffers - before < 8 * MIB;
    });
    // Alive until here.
    expect(reader.push).toBeTypeOf("function");
  });
});
