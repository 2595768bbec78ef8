// Pushes metrics periodically: the same metrics as /metrics, counted separately for this observer.
import type { Context, ChargeRecord, GatewayEvent, RequestRecord } from "tollgate/plugin";
import type { NamingVersion } from "../genai-names.ts";
import { MetricsWriter } from "../metrics/metrics-writer.ts";
import { createSharedTally } from "../metrics/shared-tally.ts";
import type { ExportCounts } from "./export-queue.ts";
import { MetricMessages } from "./metric-messages.ts";
import type { HttpExporter } from "./http-exporter.ts";
import type { OtlpSettings } from "./settings.ts";

export interface MetricsPush {
  onRequests(batch: readonly RequestRecord[]): void;
  onCharges(lines: readonly ChargeRecord[]): void;
  onEvent(notice: GatewayEvent): void;
  /**
   * Pushes the current state. Metrics are cumulative and the next push repeats them, so none is
   * queued.
   */
  push(): Promise<void>;
}

export function createMetricsPush(
  post: HttpExporter,
  { intervalMs }: Pick<OtlpSettings, "intervalMs">,
  spellings: readonly NamingVersion[],
  counts: ExportCounts,
  ctx: Context,
): MetricsPush {
  const options = { genAi: spellings.length > 0, keys: false, labels: [], maxLabelValues: 0 };
  const { tally, activate } = createSharedTally(ctx, options);
  const { since } = ctx.shared("began", () => ({ since: Date.now() }));
  const all = new MetricsWriter(ctx, tally, spellings);
  const push = async (): Promise<void> => {
    const out = new MetricMessages(since, Date.now());
    await all.writeTo(out);
    const items = post.createBatch();
    for (const metric of out.list) items.add(metric);
    const taken = await post.send(items);
    counts.sent += taken;
    counts.dropped += items.count - taken;
  };
  ctx.runEvery(intervalMs, push);
  return {
    onRequests: (batch) => activate().onRequests(batch),
    onCharges: (lines) => activate().onCharges(lines),
    onEvent: (notice) => activate().onEvent(notice),
    push,
  };
}
