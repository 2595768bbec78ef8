// Responses that `next()` of an attempt hook returns: the headers of a provider's response, or of a
// response that a hook made. A response that a hook made is sent in the protocol and form that the
// client requested.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { HeadersIn } from "../../model/values.ts";
import type {
  CallRecord,
  RateLimit,
  RecordedResponse,
  UpstreamResponse,
  SyntheticResponse,
} from "../../plugin/call.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HookReply } from "../hooks/hook-results.ts";
import type { CallTally } from "../metering/call-tally.ts";
import { parseRateLimits } from "../faults/rate-limits.ts";
import type { ClientResponse } from "./client-response.ts";
import { responseToEvents } from "../../model/response-collector.ts";
import type { Usage } from "../../model/usage.ts";
import { createResponseContext } from "./transcode.ts";

/** The headers of a provider's response, as attempt hooks receive them. */
export class ProviderResponse implements UpstreamResponse {
  readonly status: number;
  readonly headers: HeadersIn;
  readonly #response: ClientResponse;
  readonly #tally: CallTally;

  constructor(
    of: { readonly status: number; readonly headers: HeadersIn },
    answer: ClientResponse,
    tally: CallTally,
  ) {
    this.status = of.status;
    this.headers = of.headers;
    this.#response = answer;
    this.#tally = tally;
  }

  get limits(): readonly RateLimit[] {
    const own = this.#tally.call.exchange.state.billing.limitStates.map(
      ({ unit, remaining, max, resetsAt, scope, per }): RateLimit => ({
        source: "gateway",
        unit,
        remaining,
        max,
        resetsAt,
        scope,
        per,
      }),
    );
    return [...own, ...parseRateLimits(this.headers, wallClock())];
  }

  async recordResponse(max: number): Promise<RecordedResponse | null> {
    const { exchange: x, id: model } = this.#tally.call;
    if (x.privacy !== "off") return null;
    const parts = await this.#response.record(max);
    if (parts === null || x.state.outcome.fault) return null;
    const { usage } = this.#tally.usage();
    const { operation, protocol, stream } = x;
    const { contentType } = this.#response;
    return { operation, protocol, stream, contentType, body: Buffer.concat(parts), usage, model };
  }

  whenSettled(): Promise<CallRecord> {
    return this.#tally.whenSettled();
  }
}

const EMPTY_HEADERS = { status: 200, headers: {} };

/** Represents a response that a hook made itself, so that outer hooks see headers as usual. */
export class HookProvidedResponse extends ProviderResponse {
  readonly given: HookReply;

  constructor(given: HookReply, answer: ClientResponse, tally: CallTally) {
    super(EMPTY_HEADERS, answer, tally);
    this.given = given;
  }
}

/**
 * Whether a recorded response may be sent to the client of this call. The recording must match the
 * request and the form that the client requested.
 */
export function canReplay(recorded: RecordedResponse, { exchange: x }: HostCall): boolean {
  return (
    x.privacy === "off" &&
    recorded.operation === x.operation &&
    recorded.protocol === x.protocol &&
    recorded.stream === x.stream
  );
}

/**
 * Encodes a hook's response before any of it is sent. A block that a response cannot contain is an
 * error of the hook.
 */
export function encodeSyntheticResponse(
  call: HostCall,
  { response }: SyntheticResponse,
  usage: Usage,
): Buffer | string {
  const x = call.exchange;
  const server = x.state.frontend.server!;
  const context = createResponseContext(call);
  const whole = { ...response, id: x.id, usage };
  if (!x.stream) {
    const encoded = server.encodeResponse(whole, context);
    return Buffer.isBuffer(encoded) ? encoded : JSON.stringify(encoded);
  }
  const parts: Buffer[] = [];
  const encoder = server.createEncoder((part) => parts.push(Buffer.from(part)), context);
  for (const event of responseToEvents(whole)) encoder.writeEvent(event);
  return Buffer.concat(parts);
}

/** Sends a complete response in one piece. */
export function sendWholeResponse(response: ClientResponse, body: Buffer | string): void {
  response.write(body);
  response.commit();
  response.end();
}
