// A truncated stream is billed by the forwarded text. Relays must find about the same amount as a
// decoder, without decoding: hardly less, and little more than its JSON escapes.
import { describe, expect, it } from "vitest";
import type { ClientHalf, ModelEvent, PassthroughSink } from "tollgate/plugin";
import { isStreamRecording, readRecordings } from "../../src/testing/recording.ts";
import { createCallContext, createResponseContext } from "../../src/testing/codec-contexts.ts";
import { chats } from "./generators/codecs.ts";

const bytesIn = (text: string) => Buffer.byteLength(text);

function decoded(client: ClientHalf<"chat">, body: Buffer, stream: boolean): number {
  let bytes = 0;
  const emit = (event: ModelEvent) => {
    if (event.type === "delta") bytes += bytesIn(event.text);
  };
  if (!stream) client.decodeResponse(body, emit, createCallContext({ stream }), {});
  else {
    const decoder = client.createDecoder(emit, createCallContext({ stream }), {});
    decoder.push(body);
    decoder.end();
  }
  return bytes;
}

function told(client: ClientHalf<"chat">, body: Buffer, stream: boolean, step: number): number {
  let bytes = 0;
  const sink: PassthroughSink = {
    setContentType() {},
    write() {},
    reportStart() {},
    reportUsage() {},
    reportFinish() {},
    reportContent(more = 0) {
      bytes += more;
    },
  };
  const relay = client.createPassthrough!(sink, createResponseContext({ stream }), {});
  for (let at = 0; at < body.length; at += stream ? step : body.length)
    relay.push(body.subarray(at, stream ? at + step : undefined));
  relay.end();
  return bytes;
}

describe.each(Object.keys(chats))("the relay of %s", (id) => {
  const client = chats[id]!.client!;
  const good = readRecordings(new URL(`../fixtures/recordings/${id}`, import.meta.url)).filter(
    ({ status, name }) => status === 200 && !name.startsWith("error") && !name.includes("audio"),
  );
  it.each(good.map((recording) => [recording.name, recording] as const))(
    "reports the amount of forwarded text: %s",
    (_name, recording) => {
      const stream = isStreamRecording(recording);
      let read: number;
      try {
        read = decoded(client, recording.body, stream);
      } catch {
        return;
      }
      const counts = [1, 7, 64, 100_000].map((step) => told(client, recording.body, stream, step));
      expect(new Set(counts).size).toBe(1);
      expect(counts[0]).toBeGreaterThanOrEqual(read * 0.9 - 12);
      expect(counts[0]).toBeLessThanOrEqual(read * 1.5 + 200);
    },
  );
});
