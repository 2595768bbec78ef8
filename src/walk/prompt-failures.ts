// A hook that nothing waits for, and what the host does when it fails.
import {
  type Asked,
  atOnce,
  blamed,
  entering,
  named,
  type Tolerance,
  went,
} from "./hook-failures.ts";

/** A hook that is not waited for. `whose`: the exchange that it is about. */
export const prompt =
  <A extends readonly unknown[], R>(
    of: Tolerance,
    hook: Asked,
    run: (...of: A) => R,
    { whose, check }: { whose: (...of: A) => unknown; check?: (said: R) => void },
  ): ((...of: A) => R) =>
  (...handed) => {
    try {
      entering(of, hook);
      const said = atOnce(run(...handed));
      check?.(said);
      went(of, hook);
      return said;
    } catch (problem) {
      blamed(of, hook, whose(...handed), problem);
      throw named(of, hook, problem);
    }
  };
