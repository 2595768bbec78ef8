// What `next()` of an attempt hook gives: the head of a provider's answer, or of one that a hook further in has given.
import { wallClock } from "../../lib/wall-clock.ts";
import type { HeadersIn } from "../../model/values.ts";
import type {
  CallRecord,
  GivenAnswer,
  RateLimit,
  RecordedAnswer,
  Reply,
} from "../../plugin/call.ts";
import type { HostCall } from "../call.ts";
import type { Tally } from "../money/tally.ts";
import { providerLimits } from "../upstream/rate-limits.ts";
import type { ClientAnswer } from "./client-answer.ts";

/** The head of a provider's answer, as `attempt` hooks get it. */
export class ProviderReply implements Reply {
  readonly status: number;
  readonly headers: HeadersIn;
  readonly #answer: ClientAnswer;
  readonly #tally: Tally;

  constructor(
    of: { readonly status: number; readonly headers: HeadersIn },
    answer: ClientAnswer,
    tally: Tally,
  ) {
    this.status = of.status;
    this.headers = of.headers;
    this.#answer = answer;
    this.#tally = tally;
  }

  get limits(): readonly RateLimit[] {
    const own = this.#tally.call.exchange["~"].limits.map(
      ({ unit, left, max, resetsAt, scope, per }): RateLimit => ({
        by: "gateway",
        unit,
        left,
        max,
        resetsAt,
        scope,
        per,
      }),
    );
    return [...own, ...providerLimits(this.headers, wallClock())];
  }

  async record(max: number): Promise<RecordedAnswer | null> {
    const { exchange: x, id: model } = this.#tally.call;
    if (x.privacy !== "off") return null;
    const parts = await this.#answer.record(max);
    if (parts === null || x["~"].fault) return null;
    const { usage } = this.#tally.usage();
    const { kind, protocol, stream } = x;
    const { mime } = this.#answer;
    return { kind, protocol, stream, mime, body: Buffer.concat(parts), usage, model };
  }

  settled(): Promise<CallRecord> {
    return this.#tally.settled();
  }
}

const NO_HEAD = { status: 200, headers: {} };

/** The reply that stands for what a hook has answered by itself: hooks around it see a head like any other. */
export class HookReply extends ProviderReply {
  readonly given: RecordedAnswer | GivenAnswer;

  constructor(given: RecordedAnswer | GivenAnswer, answer: ClientAnswer, tally: Tally) {
    super(NO_HEAD, answer, tally);
    this.given = given;
  }
}

/** Whether a recorded answer may be given to the client of this call: what it asked for, in the form that it asked for. */
export function fits(got: RecordedAnswer, { exchange: x }: HostCall): boolean {
  return (
    x.privacy === "off" &&
    got.kind === x.kind &&
    got.protocol === x.protocol &&
    got.stream === x.stream
  );
}
