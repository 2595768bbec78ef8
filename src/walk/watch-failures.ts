import type { Hooks } from "../plugin/middleware.ts";
import {
  atOnce,
  blamed,
  entering,
  isWord,
  passOver,
  went,
  type Tolerance,
} from "./hook-failures.ts";

/** A watcher that fails under `pass` watches no longer; the answer goes on. */
export function toleratedWatch(
  of: Tolerance,
  run: NonNullable<Hooks["watch"]>,
): NonNullable<Hooks["watch"]> {
  if (of.onError === "refuse") return run;
  return (call, stop) => {
    let watching: ReturnType<typeof run> | undefined;
    const failed = (problem: unknown) => {
      watching = undefined;
      if (!isWord(problem)) blamed(of, "watch", call.exchange, problem);
      passOver(of, "watch", problem);
    };
    try {
      entering(of, "watch");
      watching = atOnce(run(call, stop));
    } catch (problem) {
      failed(problem);
    }
    return (event) => {
      try {
        if (!watching) return;
        atOnce(watching(event));
        if (event.type === "finish") went(of, "watch");
      } catch (problem) {
        failed(problem);
      }
    };
  };
}
