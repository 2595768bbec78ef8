// The context of a call for a codec that writes a response.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { ModelInfo } from "../../model/facts.ts";
import type { Body } from "../../model/values.ts";
import type { ResponseContext } from "../../plugin/protocol.ts";
import type { HostCall } from "../exchange/call.ts";

export function createResponseContext(call: HostCall): ResponseContext {
  return new CallResponseContext(call);
}

class CallResponseContext implements ResponseContext {
  readonly id: string;
  readonly model: string;
  readonly created = Math.floor(wallClock() / 1000);
  readonly stream: boolean;
  readonly body: Body;
  readonly info: ModelInfo;
  readonly #call: HostCall;

  constructor(call: HostCall) {
    const x = call.exchange;
    this.id = x.id;
    this.model = call.id;
    this.stream = x.stream;
    this.body = x.body;
    this.info = call.info;
    this.#call = call;
  }

  // Methods, not closures in fields, which would keep the call in memory (`let-go.test.ts`).
  /** Parsed only when read: few protocols use it, and parsing is expensive. */
  get query(): URLSearchParams {
    return this.#call.exchange.query;
  }
  reportLoss(field: string, how: "dropped" | "approximated", code?: string): void {
    this.#call.reportLoss(field, how, code);
  }
}
