import type { HeadersIn } from "../../model/values.ts";
import type { RecordedAnswer, Reply } from "../../plugin/call.ts";
import type { Tally } from "../money/tally.ts";
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

  async record(max: number): Promise<RecordedAnswer | null> {
    const { exchange: x, id: model } = this.#tally.call;
    if (x.privacy !== "off") return null;
    const parts = await this.#answer.record(max);
    if (parts === null || x["~"].fault) return null;
    const { usage } = this.#tally.usage();
    return { mime: this.#answer.mime, body: Buffer.concat(parts), usage, model };
  }
}
