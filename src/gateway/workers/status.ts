// One status for all processes of a gateway.
import { worse } from "../readings/cooldowns.ts";
import type { Status, WorkerStatus } from "../types.ts";

export function together(primary: Status, workers: readonly WorkerStatus[] | undefined): Status {
  if (!workers) return primary;
  const inFlight = new Map(primary.generations.map((each) => [each.generation, each.inFlight]));
  const resting = new Map<string, Status["resting"][number]>();
  // Observers are in the primary, and other plugins in the workers.
  const all = [primary, ...workers].flatMap(({ quarantined }) => quarantined);
  const quarantined = new Map<string, Status["quarantined"][number]>();
  for (const one of all.toSorted((a, b) => a.until - b.until))
    quarantined.set(`${one.plugin} ${one.hook}`, one);
  // Requests pass through the workers only.
  const unreachable = new Map<string, Status["unreachable"][number]>();
  for (const one of workers.flatMap((worker) => worker.unreachable))
    if (one.since < (unreachable.get(one.plugin)?.since ?? Infinity))
      unreachable.set(one.plugin, one);
  const speeds = new Map<string, Status["speeds"][number]>();
  const files = { ...primary.files };
  for (const worker of workers) {
    for (const { generation, inFlight: more } of worker.generations)
      inFlight.set(generation, (inFlight.get(generation) ?? 0) + more);
    for (const rest of worker.resting) resting.set(rest.what, worse(resting.get(rest.what), rest));
    for (const speed of worker.speeds) {
      const key = `${speed.what} ${speed.stream}`;
      if (speed.askedAt > (speeds.get(key)?.askedAt ?? 0)) speeds.set(key, speed);
    }
    // One folder, which each counts now and then; what was done is each one's own.
    files.files = Math.max(files.files, worker.files.files);
    files.bytes = Math.max(files.bytes, worker.files.bytes);
    for (const count of ["kept", "served", "refused", "swept"] as const)
      files[count] += worker.files[count];
  }
  return {
    ...primary,
    generations: [...inFlight]
      .map(([generation, flying]) => ({ generation, inFlight: flying }))
      .sort((a, b) => b.generation - a.generation),
    resting: [...resting.values()],
    quarantined: [...quarantined.values()],
    unreachable: [...unreachable.values()],
    // Each has its own view: what is told is that of the one that asked last.
    speeds: [...speeds.values()],
    files,
    workers,
  };
}
