// A process with a small heap, a gate in it and one call under way: fills its heap to the share that it is told, and says whether
// another call is taken.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AdmissionQueue } from "../../../src/pipeline/admission/admission-queue.ts";
import { LoadMonitor } from "../../../src/pipeline/admission/load-monitor.ts";

/** What a tick is, and more than one. */
const TICKS_MS = 250;
const PIECE = 1_000_000;
/** As it was started. */
const MOST = Number(process.argv[2]) * 2 ** 20;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const gate = new AdmissionQueue({ maxConcurrent: 10, maxQueueWaitMs: 1_000 }, new LoadMonitor());
const kept: number[][] = [];
/** Of what lives longer: with more than all of that V8 ends the process, whatever room is left for what is young. */
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

/** What a collection finds is swept later: it is looked at again when that is over. */
function filled(share: number): void {
  for (collect(); part() < share; collect())
    while (part() < share) kept.push(Array<number>(PIECE / 8).fill(0.5));
  // The first call is what has it measured.
  taken();
  setTimeout(() => {
    if (part() < share) return filled(share);
    process.send!({ part: part(), taken: taken() });
  }, TICKS_MS);
}
