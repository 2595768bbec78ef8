import type { GatewayConfig } from "../../config/gateway-config.ts";

/**
 * Paths whose changes require a restart, with the keys below them: those that `changedStaticKeys`
 * compares.
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
