// Passthrough streams that several protocols share.
import type { Fault } from "../model/error.ts";
import type { ModelEvent } from "../model/event.ts";
import type { Usage } from "../model/usage.ts";
import type { JsonObject } from "../model/values.ts";
import type { Decoder, Encoder, PassthroughSink, PassthroughStream } from "../plugin/protocol.ts";
import { failTruncated } from "./failure/parse-error.ts";
import { encodeFault } from "./failure/openai-error.ts";
import { EventPassthrough, parseEventText } from "./sse/index.ts";

export const writeJson = (sink: PassthroughSink, json: JsonObject): void =>
  sink.write(Buffer.from(JSON.stringify(json)));

/**
 * Forwards a response that arrives in one piece. `forward` reports its content and usage, and
 * writes it.
 */
export const createResponsePassthrough = (
  sink: PassthroughSink,
  forward: (body: Buffer) => void,
  faultBody: (fault: Fault) => JsonObject,
): PassthroughStream => ({
  isBetweenEvents: true,
  push: forward,
  end() {},
  writeFault: (fault) => writeJson(sink, faultBody(fault)),
});

/** Returns the body of an error in OpenAI's form. */
export const openaiFaultBody =
  (to: { id: string }) =>
  (fault: Fault): JsonObject =>
    encodeFault(fault, to).body;

/**
 * Decodes a response and encodes it again, for a client that requested another format than the
 * provider sent.
 */
export function createConvertingPassthrough(
  sink: PassthroughSink,
  encoder: Encoder,
  createDecoder: (emit: (event: ModelEvent) => void) => Decoder,
): PassthroughStream {
  let counted: Usage = {};
  const decoder = createDecoder((event) => {
    if (event.type === "delta") sink.reportContent(Buffer.byteLength(event.text));
    else if (event.type === "item") sink.reportContent(0);
    else if (event.type === "usage") {
      counted = event.usage;
      return sink.reportUsage(event);
    } else if (event.type === "finish")
      encoder.writeEvent({ type: "usage", usage: { ...counted, ...sink.reportFinish("stop") } });
    return encoder.writeEvent(event);
  });
  return {
    isBetweenEvents: false,
    push: (chunk) => decoder.push(chunk),
    end: () => decoder.end(),
    writeFault: (fault) => encoder.writeFault(fault),
  };
}

/**
 * Forwards events unchanged. The last event contains the usage and is held back until usage is
 * settled. Events after the last event are dropped.
 */
export abstract class FinalUsagePassthrough extends EventPassthrough {
  /** Reads the data of an event and reports its content. Returns the usage of the last event. */
  protected abstract read(data: string): Usage | undefined;

  protected onEvent(b: Buffer, from: number, to: number): void {
    if (this.isOver) return;
    const event = parseEventText(b.subarray(from, to));
    const usage = event && event.data !== "[DONE]" ? this.read(event.data) : undefined;
    if (!usage) return this.out.addRange(b, from, to);
    this.isOver = true;
    this.out.flush();
    this.sink.reportUsage({ type: "usage", usage });
    this.sink.reportFinish("stop");
    this.out.addRange(b, from, to);
  }

  protected onEnd(): void {
    failTruncated();
  }
}
