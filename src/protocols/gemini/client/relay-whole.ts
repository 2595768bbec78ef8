// The verbatim lane of an answer that is one JSON text.
import type { Fault } from "../../../model/error.ts";
import { folding } from "../../../model/fold.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { list } from "../../json.ts";
import { gather, needle, valueAt } from "../../sse/index.ts";
import { ChunkWriter } from "../server/chunk-writer.ts";
import { countsTo } from "../server/content.ts";
import { faultBody } from "../server/fault.ts";
import { whole } from "../server/whole.ts";
import { GeminiReader } from "./reader.ts";
import { ChunkTap, tierOf } from "./tap.ts";
import { parsed } from "./whole.ts";

const MODEL = needle("modelVersion");

export function relayWhole(sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay {
  return {
    between: true,
    push(body) {
      const json = parsed(body);
      if (Array.isArray(json)) return folded(list(json), sink, to, headers);
      const tap = new ChunkTap(sink, to, tierOf(headers));
      const answer = tap.chunk(json);
      if (tap.begins(answer)) sink.content(0);
      tap.told();
      const settled = tap.finish();
      const at = valueAt(body, [MODEL], body.indexOf(123));
      const name = at && body.toString("utf8", at.from, at.to);
      const said = answer["modelVersion"];
      // Written twice, and differently, it means the last to us and perhaps the first to others.
      if (settled || (said !== undefined && name !== JSON.stringify(said)))
        return sink.bytes(
          Buffer.from(
            JSON.stringify({
              ...answer,
              ...(said !== undefined && { modelVersion: to.model }),
              ...(settled && { usageMetadata: countsTo(settled) }),
            }),
          ),
        );
      if (!at) return sink.bytes(body);
      const out = gather((b) => sink.bytes(b));
      out.add(body.subarray(0, at.from));
      out.add(Buffer.from(JSON.stringify(to.model)));
      out.add(body.subarray(at.to));
      out.flush();
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(faultBody(f))));
    },
  };
}

/** A server that streams all the same: its pieces, put together. */
function folded(
  pieces: readonly Json[],
  sink: RelaySink,
  to: AnswerContext,
  headers: HeadersIn,
): void {
  const { event, answer } = folding();
  let counted = false;
  const reading = new GeminiReader(
    (e) => {
      if (e.type === "start") sink.start(e.id ?? "");
      if (e.type === "delta") sink.content(Buffer.byteLength(e.text));
      if (e.type === "usage") {
        counted = true;
        sink.usage(e);
      }
      event(e);
    },
    { model: to.model, info: to.info ?? { model: to.model, kind: "chat" } },
    { draws: false, tier: tierOf(headers) },
  );
  for (const piece of pieces) reading.chunk(piece);
  reading.end();
  const said = answer();
  const settled = sink.finish(said.finish.reason);
  const usage = counted ? said.usage : (settled ?? said.usage);
  sink.bytes(Buffer.from(JSON.stringify(whole({ ...said, usage }, to))));
}

/** A stream was asked for, and one text came: an answer, or the list of its chunks. The client gets its stream nevertheless. */
export function restream(
  body: Buffer,
  sink: RelaySink,
  to: AnswerContext,
  headers: HeadersIn,
): void {
  const tap = new ChunkTap(sink, to, tierOf(headers));
  const json = parsed(body);
  const chunks = (Array.isArray(json) ? list(json) : [json]).map((one) => tap.chunk(one));
  const pieces: string[] = [];
  const page = new ChunkWriter((piece) => pieces.push(piece), to);
  for (const [i, chunk] of chunks.entries()) {
    const named: JsonObject =
      chunk["modelVersion"] === undefined ? chunk : { ...chunk, modelVersion: to.model };
    if (tap.begins(chunk)) sink.content(0);
    if (i < chunks.length - 1) {
      page.chunk(named);
      continue;
    }
    sink.bytes(Buffer.from(pieces.splice(0).join("")));
    const settled = tap.finish();
    page.end(settled ? { ...named, usageMetadata: countsTo(settled) } : named);
  }
  sink.bytes(Buffer.from(pieces.join("")));
}
