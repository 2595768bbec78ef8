// Decides which reloads are reported to observers, and why one was rejected.
import type { Services } from "../services.ts";
import type { ReloadResult, GatewayStatus } from "../gateway-api.ts";

/** Reports a reload to observers if it is new information. */
export function reportReload(
  { observerSink, mask }: Pick<Services, "observerSink" | "mask">,
  before: ReloadResult | undefined,
  now: NonNullable<GatewayStatus["lastReload"]>,
): void {
  if (!isReportable(before, now)) return;
  const { at, trigger, ok, generation } = now;
  const reason = rejectionReasonOf(now);
  const reasonField = reason !== undefined && { reason: mask.maskText(reason) };
  observerSink.reportEvent({ type: "reloaded", at, trigger, ok, generation, ...reasonField });
}

/**
 * Whether a reload is reported. An unchanged config is reported only if the previous reload was
 * rejected, because then nothing is pending any more. The same rejection of the same file, for
 * example after a signal, is not repeated.
 */
export function isReportable(before: ReloadResult | undefined, now: ReloadResult): boolean {
  if (now.ok) return !now.isUnchanged || before?.ok === false;
  return before === undefined || before.ok || rejectionReasonOf(before) !== rejectionReasonOf(now);
}

/**
 * Returns the first error with its location, and the number of further ones. Returns undefined if
 * the config was accepted.
 */
export function rejectionReasonOf({ ok, problems, restartKeys }: ReloadResult): string | undefined {
  if (ok) return undefined;
  if (restartKeys) return `${restartKeys.join(", ")} cannot change without a restart`;
  const [first, ...more] = problems.filter(({ severity }) => severity === "error");
  if (!first) return undefined;
  const { file, line, column, path, message } = first;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place} ${path === "" ? "" : `${path}: `}${message}${more.length > 0 ? ` (and ${more.length} more)` : ""}`;
}
