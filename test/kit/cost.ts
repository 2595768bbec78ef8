// Measures what each test file costs: processor time of this process and of its ended children, from /proc, and the programs it
// started. Processor time does not depend on what else the machine does, so the runner can order and compare files by it.
import { appendFileSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { afterAll, expect } from "vitest";
import { root, startedPrograms } from "./process/program.ts";

/** File in which the runner collects the figures. Unset if vitest is started by hand. */
const file = process.env["TOLLGATE_TEST_COSTS"];

/** Ticks of /proc/self/stat are hundredths of a second on every Linux that Node supports. */
function processorSeconds(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

if (file !== undefined && process.platform === "linux") {
  const before = {
    seconds: processorSeconds(),
    programs: startedPrograms(),
    at: performance.now(),
  };
  afterAll(() => {
    appendFileSync(
      file,
      `${JSON.stringify({
        file: relative(root, expect.getState().testPath ?? root),
        seconds: processorSeconds() - before.seconds,
        elapsed: (performance.now() - before.at) / 1000,
        programs: startedPrograms() - before.programs,
      })}\n`,
    );
  });
}
