// Merges the status of all processes of a gateway.
import { worseCooldown } from "../health/merge-cooldowns.ts";
import type { GatewayStatus, WorkerStatus } from "../gateway-api.ts";

export function mergeStatus(
  primary: GatewayStatus,
  workers: readonly WorkerStatus[] | undefined,
): GatewayStatus {
  if (!workers) return primary;
  const inFlight = new Map(primary.generations.map((each) => [each.generation, each.inFlight]));
  const resting = new Map<string, GatewayStatus["cooldowns"][number]>();
  // Observers run in the primary, and other plugins in the workers.
  const all = [primary, ...workers].flatMap(({ quarantinedHooks }) => quarantinedHooks);
  const quarantined = new Map<string, GatewayStatus["quarantinedHooks"][number]>();
  for (const one of all.toSorted((a, b) => a.until - b.until))
    quarantined.set(`${one.plugin} ${one.hook}`, one);
  // Only workers serve requests, so the outages that they report count.
  const unreachable = new Map<string, GatewayStatus["unreachablePlugins"][number]>();
  for (const one of workers.flatMap((worker) => worker.unreachablePlugins))
    if (one.since < (unreachable.get(one.plugin)?.since ?? Infinity))
      unreachable.set(one.plugin, one);
  const latencies = new Map<string, GatewayStatus["latencies"][number]>();
  const files = { ...primary.files };
  for (const worker of workers) {
    for (const { generation, inFlight: more } of worker.generations)
      inFlight.set(generation, (inFlight.get(generation) ?? 0) + more);
    for (const rest of worker.cooldowns)
      resting.set(rest.target, worseCooldown(resting.get(rest.target), rest));
    for (const latency of worker.latencies) {
      const key = `${latency.target} ${latency.stream}`;
      if (latency.calledAt > (latencies.get(key)?.calledAt ?? 0)) latencies.set(key, latency);
    }
    // All processes share one directory and count its files periodically, so the maximum is used.
    // Operation counts are per process and are added.
    files.files = Math.max(files.files, worker.files.files);
    files.bytes = Math.max(files.bytes, worker.files.bytes);
    for (const count of ["stored", "served", "rejected", "expired"] as const)
      files[count] += worker.files[count];
  }
  return {
    ...primary,
    generations: [...inFlight]
      .map(([generation, flying]) => ({ generation, inFlight: flying }))
      .sort((a, b) => b.generation - a.generation),
    cooldowns: [...resting.values()],
    quarantinedHooks: [...quarantined.values()],
    unreachablePlugins: [...unreachable.values()],
    // Each process measures its own latencies. The status has those of the last process that called
    // the target.
    latencies: [...latencies.values()],
    files,
    workers,
  };
}
