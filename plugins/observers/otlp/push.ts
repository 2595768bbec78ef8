// Metrics, pushed again and again: the same counts that a scrape reads, kept for this observer.
import type { Context, LedgerLine, Notice, RequestRecord } from "tollgate/plugin";
import type { Spelling } from "../genai.ts";
import { Everything } from "../metrics/everything.ts";
import { following } from "../metrics/following.ts";
import type { BatchCounts } from "./batches.ts";
import { MetricMessages } from "./metrics.ts";
import type { Post } from "./post.ts";
import type { OtlpSettings } from "./settings.ts";

export interface Pushing {
  seen(batch: readonly RequestRecord[]): void;
  billed(lines: readonly LedgerLine[]): void;
  told(notice: Notice): void;
  /** As it is now; the next one says it all again, so none of them waits for its turn. */
  push(): Promise<void>;
}

export function pushing(
  post: Post,
  { intervalMs }: Pick<OtlpSettings, "intervalMs">,
  spellings: readonly Spelling[],
  counts: BatchCounts,
  ctx: Context,
): Pushing {
  const options = { genAi: spellings.length > 0, keys: false, labels: [], most: 0 };
  const { tally, mine } = following(ctx, options);
  const { since } = ctx.shared("began", () => ({ since: Date.now() }));
  const all = new Everything(ctx, tally, spellings);
  const push = async (): Promise<void> => {
    const out = new MetricMessages(since, Date.now());
    await all.tell(out);
    const items = post.empty();
    for (const metric of out.list) items.add(metric);
    const taken = await post.send(items);
    counts.sent += taken;
    counts.dropped += items.count - taken;
  };
  ctx.every(intervalMs, push);
  return {
    seen: (batch) => mine().seen(batch),
    billed: (lines) => mine().billed(lines),
    told: (notice) => mine().told(notice),
    push,
  };
}
