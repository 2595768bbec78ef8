// Minimal images of each format, and fakes of the host for a codec.
import { deflateSync, crc32 } from "node:zlib";
import type { ModelInfo } from "../../../src/model/facts.ts";
import type { ModelEvent } from "../../../src/model/event.ts";
import type { Body, JsonObject } from "../../../src/model/values.ts";
import type { ResponseContext, CallContext } from "../../../src/plugin/protocol.ts";
import type { PassthroughSink } from "../../../src/plugin/protocol.ts";
import { OutgoingRequest } from "../../../src/pipeline/upstream/outgoing-request.ts";

export function png(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc32(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.alloc((width + 1) * height))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

export interface Lost {
  field: string;
  how: string;
}

export function asking(
  more: Partial<CallContext> & { info?: ModelInfo } = {},
): CallContext & { lost: Lost[] } {
  const lost: Lost[] = [];
  return {
    actionType: "generate",
    action: "generate",
    model: "picture-1",
    info: { model: "picture-1", operation: "image" },
    stream: false,
    params: {},
    query: new URLSearchParams(),
    reportLoss: (field, how) => void lost.push({ field, how }),
    ...more,
    lost,
  };
}

export const answering = (
  body: Body = {},
  more: Partial<ResponseContext> = {},
): ResponseContext => ({
  id: "r1",
  model: "host/picture-1",
  created: 1_795_000_000,
  stream: body["stream"] === true,
  body,
  query: new URLSearchParams(),
  reportLoss() {},
  ...more,
});

export const departure = (body: Body): OutgoingRequest =>
  new OutgoingRequest({ method: "POST", path: "/images/generations", body });

export const left = (out: OutgoingRequest): JsonObject =>
  JSON.parse(out.toChunks()!.toBuffer().toString()) as JsonObject;

export function collected(run: (emit: (e: ModelEvent) => void) => void): ModelEvent[] {
  const events: ModelEvent[] = [];
  run((e) => events.push(e));
  return events;
}

/** Records a relay's reports in order, with the bytes in between. */
export function sink(): PassthroughSink & {
  log: string[];
  write(b: Buffer): void;
  text(): string;
} {
  const log: string[] = [];
  const chunks: Buffer[] = [];
  return {
    log,
    setContentType() {},
    write(b) {
      chunks.push(Buffer.from(b));
      log.push("bytes");
    },
    reportContent: () => void log.push("content"),
    reportStart: (id) => void log.push(`start ${id}`),
    reportUsage: ({ usage, costNano }) =>
      void log.push(
        `usage ${JSON.stringify(usage)}${costNano === undefined ? "" : ` ${costNano}n`}`,
      ),
    reportFinish(reason) {
      log.push(`finish ${reason}`);
      return undefined;
    },
    text: () => Buffer.concat(chunks).toString(),
  };
}
