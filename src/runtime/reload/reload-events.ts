// Which reloads observers are told of, and why one was refused.
import type { Services } from "../services.ts";
import type { ReloadResult, GatewayStatus } from "../gateway-api.ts";

/** Tells observers of a reload that is news. */
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
 * Whether a reload is news. A file that says what runs is none, unless the reload before was refused: then it is known that nothing is
 * left undone. The same refusal again, of the same file by a signal, say, is none either.
 */
export function isReportable(before: ReloadResult | undefined, now: ReloadResult): boolean {
  if (now.ok) return !now.isUnchanged || before?.ok === false;
  return before === undefined || before.ok || rejectionReasonOf(before) !== rejectionReasonOf(now);
}

/** The first error, with its place, and how many more there are; undefined: it was accepted. */
export function rejectionReasonOf({ ok, problems, restartKeys }: ReloadResult): string | undefined {
  if (ok) return undefined;
  if (restartKeys) return `${restartKeys.join(", ")} cannot change without a restart`;
  const [first, ...more] = problems.filter(({ severity }) => severity === "error");
  if (!first) return undefined;
  const { file, line, column, path, message } = first;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place} ${path === "" ? "" : `${path}: `}${message}${more.length > 0 ? ` (and ${more.length} more)` : ""}`;
}
