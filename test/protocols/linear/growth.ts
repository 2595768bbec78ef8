// Growth of work: the same form at several sizes. It runs with little stack left, so that
// recursion, or spreading a list into arguments, fails.
import assert from "node:assert/strict";
import { getFault } from "tollgate/plugin";
import { measure } from "../../kit/process/cpu-time.ts";

/** Created once. Its result is run, and only that is measured. */
export type Shape = (n: number) => () => unknown;

const TIMES = 4;
/** Linear work grows by four, noise doubles that, and quadratic work grows by sixteen. */
const MOST = 9;
/** Less time than this at the larger size is too little to measure growth. */
const FLOOR_MS = 4;

/** Fails on growth above linear, and on any exception that is no fault. `n`: pieces. */
export function linear(shape: Shape, n: number): void {
  // Other load on the machine may look like growth, so only CPU time counts.
  const { elapsed } = measured(shape(n));
  if (elapsed > FLOOR_MS && elapsed > MOST * measured(shape(n / TIMES)).elapsed) convict(shape, n);
}

function convict(shape: Shape, n: number): void {
  let [small, large] = [0, 0];
  for (let attempt = 0; attempt < 2; attempt++) {
    large = mean(shape, n);
    // Only a few ticks of the CPU clock.
    if (large < FLOOR_MS) return;
    small = mean(shape, n / TIMES);
    if (large <= MOST * small) return;
  }
  assert.fail(
    `${n / TIMES} pieces took ${small.toFixed(2)} ms, ${n} took ${large.toFixed(2)} ms: ${(large / small).toFixed(1)} times as long`,
  );
}

/** Enough CPU time that the ticks of its clock do not matter. */
const ENOUGH_MS = 24;

function mean(shape: Shape, n: number): number {
  const run = shape(n);
  let spent = 0;
  let runs = 0;
  while (spent < ENOUGH_MS && runs < 20) {
    spent += measured(run).processor;
    runs++;
  }
  return spent / runs;
}

function measured(run: () => unknown): ReturnType<typeof measure> {
  let found = { elapsed: 0, processor: 0 };
  narrowly(() => {
    found = measure(() => {
      try {
        run();
      } catch (error) {
        // A rejection is a valid result.
        if (!getFault(error)) throw error;
      }
    });
  });
  return found;
}

/** Remaining stack frames: enough for 64 levels, too few for a level or an argument per part. */
const LEFT = 1200;

export function narrowly(run: () => void): void {
  let unwound = 0;
  let thrown: { error: unknown } | undefined;
  const down = (): void => {
    if (thrown) return;
    try {
      down();
    } catch {
      // The stack is full: some of it is released before the work starts.
    }
    if (unwound++ !== LEFT) return;
    try {
      run();
    } catch (error) {
      thrown = { error };
    }
  };
  down();
  if (thrown) throw (thrown as { error: unknown }).error;
}
