// Responses of one connection: requested responses that the provider has not begun, and running
// responses. The provider also begins a response without a request when it detects that the user
// has stopped speaking.
import { fail } from "../../model/error.ts";
import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject } from "../../model/values.ts";
import type { MeteredResponse } from "../../plugin/socket.ts";
import { parseErrorBody } from "../failure/parse-error.ts";
import { asObject, asText } from "../json-values.ts";
import { decodedLength } from "./audio-format.ts";
import { estimateTextTokens, SPOKEN_A_SECOND, type ConversationEstimate } from "./conversation.ts";
import { readResponseUsage } from "./usage.ts";
import { addedItem, WatchedBlocks } from "./watched-blocks.ts";

/** Maximum number of requested or running responses on one connection. */
const MAX_RESPONSES = 32;

/** A response that the client requested. */
interface RequestedResponse {
  readonly response: MeteredResponse;
  readonly eventId: string | undefined;
  readonly inputUsage: Usage;
}

/** A response that the provider has begun. */
interface RunningResponse {
  readonly id: string;
  readonly response: MeteredResponse;
  readonly watched: WatchedBlocks;
  /** Estimated input, for a response that ends without a usage report. */
  readonly inputUsage: Usage;
  audioBytes: number;
  textBytes: number;
}

export class Responses {
  #requested: RequestedResponse[] = [];
  readonly #running = new Map<string, RunningResponse>();

  /** Rejects a request for a response if too many are open. */
  checkLimit(): void {
    if (this.#requested.length + this.#running.size >= MAX_RESPONSES)
      fail("rate_limited", "Too many responses are running on this connection.", {
        code: "too_many_responses",
      });
  }

  /**
   * Adds a requested response. If the connection ends before the provider reports its ID, the
   * response is billed for its input.
   */
  addRequested(requested: RequestedResponse): void {
    requested.response.reportEstimate(requested.inputUsage);
    this.#requested.push(requested);
  }

  /**
   * Starts a response with the ID that the provider reports. `begin` is called if the client did
   * not request the response.
   */
  start(id: string, begin: () => MeteredResponse, inputUsage: Usage): RunningResponse {
    const running = this.#running.get(id);
    if (running) return running;
    if (this.#running.size >= MAX_RESPONSES)
      fail("upstream", "The provider runs too many concurrent responses.");
    const requested = this.#takeRequested();
    const response = requested?.response ?? begin();
    response.reportStart(id);
    const started: RunningResponse = {
      id,
      response,
      watched: new WatchedBlocks((event) => response.reportEvent(event)),
      inputUsage: requested?.inputUsage ?? inputUsage,
      audioBytes: 0,
      textBytes: 0,
    };
    response.reportEstimate(started.inputUsage);
    this.#running.set(id, started);
    return started;
  }

  /** Reads an event inside a response. `outputRate`: bytes per second of its audio. */
  progress(type: string, event: JsonObject, outputRate: number): void {
    const running = this.#running.get(asText(event["response_id"]) ?? "");
    if (!running) return;
    const item = addedItem(event);
    if (item) running.watched.item(item);
    if (type === "response.output_audio.delta" || type === "response.audio.delta") {
      running.audioBytes += decodedLength(asText(event["delta"]) ?? "");
      running.response.reportContent(0);
    } else {
      const bytes = running.watched.delta(type, event);
      if (bytes === undefined) return;
      running.textBytes += bytes;
      running.response.reportContent(bytes);
    }
    running.response.reportEstimate(estimateUsage(running, outputRate));
  }

  /** Ends a response. Returns the known additions of the response to the conversation. */
  finish(
    running: RunningResponse,
    report: JsonObject,
    conversation: ConversationEstimate,
    outputRate: number,
  ): void {
    this.#running.delete(running.id);
    const { response, watched } = running;
    watched.close();
    const estimate = estimateUsage(running, outputRate);
    const reported = readResponseUsage(asObject(report["usage"]));
    if (reported?.isSplit) response.reportUsage({ type: "usage", usage: reported.usage });
    else if (reported) {
      const input = (reported.usage.input ?? 0) + (reported.usage.cache_read ?? 0);
      response.reportEstimate({ ...estimate, ...conversation.split(input) });
    }
    // A response outside of the conversation does not change it.
    if (report["conversation_id"] !== null) {
      if (reported?.isSplit) conversation.replace(reported.usage);
      else conversation.addOutput(estimate.output ?? 0, estimate.audio_out ?? 0);
    }
    endResponse(response, report);
  }

  /** Ends a response that the provider refused to begin, if the error event identifies it. */
  refuse(error: JsonObject): void {
    const eventId = asText(error["event_id"]);
    const at =
      eventId === undefined
        ? error["code"] === "conversation_already_has_active_response"
          ? 0
          : -1
        : this.#requested.findIndex((each) => each.eventId === eventId);
    const [requested] = at < 0 ? [] : this.#requested.splice(at, 1);
    if (requested && requested.response.state !== "ended")
      requested.response.reportFailure(parseErrorBody({ error }));
  }

  /** Returns the ID of a running response. Undefined: the provider has not begun it. */
  idOf(response: MeteredResponse): string | undefined {
    for (const running of this.#running.values())
      if (running.response === response) return running.id;
    return undefined;
  }

  /**
   * Returns the first requested response whose request was forwarded. A response whose reservation
   * was refused, or is not yet made, cannot be the response that the provider begins.
   */
  #takeRequested(): RequestedResponse | undefined {
    this.#requested = this.#requested.filter(({ response }) => response.state !== "ended");
    const at = this.#requested.findIndex(({ response }) => response.state === "running");
    return at < 0 ? undefined : this.#requested.splice(at, 1)[0];
  }
}

/** Estimates the usage of a response from the relayed events. */
function estimateUsage(
  { inputUsage, audioBytes, textBytes }: RunningResponse,
  outputRate: number,
): Usage {
  const spoken = Math.ceil((audioBytes / outputRate) * SPOKEN_A_SECOND);
  return {
    ...inputUsage,
    output: estimateTextTokens(textBytes),
    ...(spoken > 0 && { audio_out: spoken }),
  };
}

function endResponse(response: MeteredResponse, report: JsonObject): void {
  const details = asObject(report["status_details"]);
  if (report["status"] === "failed") {
    const error = asObject(details?.["error"]);
    response.reportFailure(
      error ? parseErrorBody({ error }) : { kind: "upstream", message: "The response failed." },
    );
  } else response.reportFinish(finishReason(report, asText(details?.["reason"])));
}

function finishReason(report: JsonObject, detail: string | undefined): FinishReason {
  if (detail === "max_output_tokens") return "length";
  if (detail === "content_filter") return "filtered";
  if (report["status"] !== "completed") return "other";
  const output = report["output"];
  const calls =
    Array.isArray(output) && output.some((item) => asObject(item)?.["type"] === "function_call");
  return calls ? "tool_calls" : "stop";
}
