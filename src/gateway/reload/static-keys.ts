import type { GatewayConfig } from "../../config/types.ts";

/** What a live reload refuses, by name. */
export function staticKeys(a: GatewayConfig, b: GatewayConfig): string[] {
  const differs = (x: unknown, y: unknown) => JSON.stringify(x) !== JSON.stringify(y);
  const of = (c: GatewayConfig) => [c.store.use, c.store.options];
  return [
    ...(differs(a.listen, b.listen) ? ["listen"] : []),
    ...(differs(a.workers, b.workers) ? ["workers"] : []),
    ...(a.stateDir === b.stateDir ? [] : ["state_dir"]),
    ...(differs(of(a), of(b)) ? ["store"] : []),
  ];
}
