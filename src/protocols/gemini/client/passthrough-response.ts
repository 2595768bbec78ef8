// Forwards a non-streaming response in passthrough mode.
import { createResponseCollector } from "../../../model/response-collector.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { asList } from "../../json-values.ts";
import { writeJson, createResponsePassthrough } from "../../passthrough.ts";
import { encodeKey, findValue, replaceModelName } from "../../sse/index.ts";
import { ChunkWriter } from "../server/chunk-writer.ts";
import { countsTo } from "../server/content.ts";
import { faultBody } from "../server/fault.ts";
import { encodeResponse } from "../server/response.ts";
import { GeminiReader } from "./reader.ts";
import { parsed } from "./response.ts";
import { UsageTap, tierOf } from "./usage-tap.ts";

const MODEL = encodeKey("modelVersion");

export function passResponse(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const forward = (body: Buffer): void => {
    const json = parsed(body);
    if (Array.isArray(json)) return mergeChunks(asList(json), sink, to, headers);
    const tap = new UsageTap(sink, to, tierOf(headers));
    const answer = tap.chunk(json);
    if (tap.isFirstContent(answer)) sink.reportContent(0);
    tap.reportText();
    const settled = tap.finish();
    const at = findValue(body, [MODEL], body.indexOf(123));
    const name = at && body.toString("utf8", at.from, at.to);
    const reportedModel = answer["modelVersion"];
    // If the model name is present twice with different values, this parser uses the last one, and
    // others may use the first. The response is then re-encoded.
    if (settled || (reportedModel !== undefined && name !== JSON.stringify(reportedModel)))
      return writeJson(sink, {
        ...answer,
        ...(reportedModel !== undefined && { modelVersion: to.model }),
        ...(settled && { usageMetadata: countsTo(settled) }),
      });
    replaceModelName(body, to.model, (b) => sink.write(b), MODEL);
  };
  return createResponsePassthrough(sink, forward, faultBody);
}

/** Merges the chunks of a server that streams although no stream was requested. */
function mergeChunks(
  pieces: readonly Json[],
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): void {
  const { event, answer } = createResponseCollector();
  let counted = false;
  const reading = new GeminiReader(
    (e) => {
      if (e.type === "start") sink.reportStart(e.id ?? "");
      if (e.type === "delta") sink.reportContent(Buffer.byteLength(e.text));
      if (e.type === "usage") {
        counted = true;
        sink.reportUsage(e);
      }
      event(e);
    },
    { model: to.model, info: to.info ?? { model: to.model, operation: "chat" } },
    { isImageRequest: false, tier: tierOf(headers) },
  );
  for (const piece of pieces) reading.chunk(piece);
  reading.end();
  const response = answer();
  const settled = sink.reportFinish(response.finish.reason);
  const usage = counted ? response.usage : (settled ?? response.usage);
  sink.write(Buffer.from(JSON.stringify(encodeResponse({ ...response, usage }, to))));
}

/**
 * Converts a non-streaming response into a stream. A stream was requested, but the provider sent
 * one response or a JSON list of chunks.
 */
export function responseAsStream(
  body: Buffer,
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): void {
  const tap = new UsageTap(sink, to, tierOf(headers));
  const json = parsed(body);
  const chunks = (Array.isArray(json) ? asList(json) : [json]).map((one) => tap.chunk(one));
  const pieces: string[] = [];
  const page = new ChunkWriter((piece) => pieces.push(piece), to);
  for (const [i, chunk] of chunks.entries()) {
    const named: JsonObject =
      chunk["modelVersion"] === undefined ? chunk : { ...chunk, modelVersion: to.model };
    if (tap.isFirstContent(chunk)) sink.reportContent(0);
    if (i < chunks.length - 1) {
      page.chunk(named);
      continue;
    }
    sink.write(Buffer.from(pieces.splice(0).join("")));
    const settled = tap.finish();
    page.endWith(settled ? { ...named, usageMetadata: countsTo(settled) } : named);
  }
  sink.write(Buffer.from(pieces.join("")));
}
