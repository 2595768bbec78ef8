// A process with a small heap, an admission queue, and one open call: fills its heap to the given
// share, and reports whether another call is admitted.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AdmissionQueue } from "../../../src/pipeline/admission/admission-queue.ts";
import { LoadMonitor } from "../../../src/pipeline/admission/load-monitor.ts";

/** More than one tick. */
const TICKS_MS = 250;
const PIECE = 1_000_000;
/** As started. */
const MOST = Number(process.argv[2]) * 2 ** 20;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const gate = new AdmissionQueue({ maxConcurrent: 10, maxQueueWaitMs: 1_000 }, new LoadMonitor());
const kept: number[][] = [];
/**
 * For old objects: with more than all of it, V8 ends the process, however much space is left for
 * young ones.
 */
const part = (): number =>
  getHeapSpaceStatistics().reduce(
    (sum, { space_name: name, space_used_size: used }) => (name === "new_space" ? sum : sum + used),
    0,
  ) / MOST;
const taken = (): boolean => {
  try {
    gate.assertNotOverloaded();
    return true;
  } catch {
    return false;
  }
};

process.on("message", ({ share, running }: { share: number; running: boolean }) => {
  if (running && gate.running === 0) void gate.acquire("a");
  if (!running && gate.running > 0) gate.release("a");
  if (part() > share) kept.length = 0;
  filled(share);
});

/** Garbage is swept later, so memory is measured again afterwards. */
function filled(share: number): void {
  for (collect(); part() < share; collect())
    while (part() < share) kept.push(Array<number>(PIECE / 8).fill(0.5));
  // The first call triggers the measurement.
  taken();
  setTimeout(() => {
    if (part() < share) return filled(share);
    process.send!({ part: part(), taken: taken() });
  }, TICKS_MS);
}
