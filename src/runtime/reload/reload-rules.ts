import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Services } from "../services.ts";
import type { ReloadResult, GatewayStatus } from "../gateway-api.ts";

/**
 * Paths whose changes require a restart, including the keys below them: `changedStaticKeys`
 * compares them.
 */
export const RESTART_PATHS = [
  "listen",
  "proxy",
  "admin.host",
  "admin.port",
  "admin.socket",
  "admin.hosts",
  "admin.behind_proxy",
  "admin.tls",
  "workers",
  "state_dir",
  "store",
] as const;

/** Returns the changed keys that a live reload does not accept. */
export function changedStaticKeys(a: GatewayConfig, b: GatewayConfig): string[] {
  const differs = (x: unknown, y: unknown) => JSON.stringify(x) !== JSON.stringify(y);
  const of = (c: GatewayConfig) => [c.store.use, c.store.options];
  // Tokens may change with each reload, because that is how a token is revoked.
  const admin = ({ admin }: GatewayConfig) =>
    admin && [admin.address, admin.hosts, admin.behindProxy, admin.tls];
  return [
    ...(differs(a.listen, b.listen) ? ["listen"] : []),
    ...(differs(a.proxy, b.proxy) ? ["proxy"] : []),
    ...(differs(admin(a), admin(b)) ? ["admin"] : []),
    ...(differs(a.workers, b.workers) ? ["workers"] : []),
    ...(a.stateDir === b.stateDir ? [] : ["state_dir"]),
    ...(differs(of(a), of(b)) ? ["store"] : []),
  ];
}

// Decides which reloads are reported to observers, and the reason for a rejection.

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
 * Whether a reload is reported. A reload without changes is reported only if the previous reload
 * was rejected, because that rejection no longer applies. If the same file is rejected again for
 * the same reason, for example after a signal, this is not reported.
 */
export function isReportable(before: ReloadResult | undefined, now: ReloadResult): boolean {
  if (now.ok) return !now.isUnchanged || before?.ok === false;
  return before === undefined || before.ok || rejectionReasonOf(before) !== rejectionReasonOf(now);
}

/**
 * Returns the first error with its location, and the number of further errors. Returns undefined if
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
