// How work grows: the same shape at several sizes. It runs where little of the stack is left, so that what recurses, or spreads a list over arguments, falls.
import assert from "node:assert/strict";
import { getFault } from "tollgate/plugin";
import { measure } from "../../kit/process/cpu-time.ts";

/** Made once; what it returns is run, and only that is measured. */
export type Shape = (n: number) => () => unknown;

const TIMES = 4;
/** Linear work is four times as much; twice that is noise, sixteen times is a square. */
const MOST = 9;
/** Less than this at the larger size is too little to tell growth by. */
const FLOOR_MS = 4;

/** Fails on growth beyond linear, and on any throw that is no fault. `n`: pieces. */
export function linear(shape: Shape, n: number): void {
  // Other work on the machine makes one look like many: only processor time convicts.
  const { elapsed } = measured(shape(n));
  if (elapsed > FLOOR_MS && elapsed > MOST * measured(shape(n / TIMES)).elapsed) convict(shape, n);
}

function convict(shape: Shape, n: number): void {
  let [small, large] = [0, 0];
  for (let attempt = 0; attempt < 2; attempt++) {
    large = mean(shape, n);
    // No more than a few ticks of the clock that counts it.
    if (large < FLOOR_MS) return;
    small = mean(shape, n / TIMES);
    if (large <= MOST * small) return;
  }
  assert.fail(
    `${n / TIMES} pieces took ${small.toFixed(2)} ms, ${n} took ${large.toFixed(2)} ms: ${(large / small).toFixed(1)} times as long`,
  );
}

/** So much processor time is measured that the ticks in which it is counted do not matter. */
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
        // To refuse is an answer.
        if (!getFault(error)) throw error;
      }
    });
  });
  return found;
}

/** Frames that are left: enough for 64 levels of anything, too few for a level or an argument for each part. */
const LEFT = 1200;

export function narrowly(run: () => void): void {
  let unwound = 0;
  let thrown: { error: unknown } | undefined;
  const down = (): void => {
    if (thrown) return;
    try {
      down();
    } catch {
      // The stack is full: some of it is given back before the work begins.
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
