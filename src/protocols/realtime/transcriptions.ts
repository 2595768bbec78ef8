// Transcriptions of the client's audio. Another model makes them, and they are billed separately
// from the responses.
import type { Fault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { MeteredResponse, MeterSink } from "../../plugin/socket.ts";
import { parseErrorBody } from "../failure/parse-error.ts";
import { asObject, asText } from "../json-values.ts";
import { readTranscriptionUsage } from "./usage.ts";

/**
 * Maximum number of open transcriptions. If there are more, the oldest transcription ends as
 * failed.
 */
const MAX_OPEN = 64;
const NEVER_CAME: Fault = { kind: "upstream", message: "The transcription did not arrive." };

export class Transcriptions {
  readonly #sink: MeterSink;
  readonly #open = new Map<string, MeteredResponse>();

  constructor(sink: MeterSink) {
    this.#sink = sink;
  }

  /** Begins the transcription of an item with so many seconds of audio. */
  start(item: string, model: string, seconds: number): MeteredResponse {
    const [oldest] = this.#open.size >= MAX_OPEN ? this.#open : [];
    if (oldest) {
      this.#open.delete(oldest[0]);
      oldest[1].reportFailure(NEVER_CAME);
    }
    const usage = { seconds: Math.ceil(seconds) };
    const response = this.#sink.beginResponse({
      model,
      facts: { features: [], expectedUsage: usage, maxUsage: usage },
    });
    response.reportStart(item);
    response.reportEstimate(usage);
    this.#open.set(item, response);
    return response;
  }

  /** Ends a transcription. `model`: the current one, for an item that was never committed. */
  finish(event: JsonObject, model: string | undefined): void {
    const item = asText(event["item_id"]) ?? "";
    const usage = readTranscriptionUsage(asObject(event["usage"]));
    let response = this.#open.get(item);
    if (!response && model === undefined && !usage) return;
    response ??= this.start(item, model ?? "", 0);
    this.#open.delete(item);
    if (usage) response.reportUsage({ type: "usage", usage });
    response.reportFinish("stop");
  }

  /** Ends a transcription that failed. Nothing is billed for it. */
  fail(event: JsonObject): void {
    const item = asText(event["item_id"]) ?? "";
    const response = this.#open.get(item);
    if (!response) return;
    this.#open.delete(item);
    response.reportUsage({ type: "usage", usage: { seconds: 0 } });
    response.reportFailure(parseErrorBody({ error: asObject(event["error"]) ?? {} }));
  }
}
