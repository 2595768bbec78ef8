import type { Hooks } from "../plugin/middleware.ts";
import { atOnce, isWord, passOver, type Tolerance } from "./hook-failures.ts";
import { note } from "./hook-notes.ts";

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
      if (!isWord(problem)) note(call.exchange, of.id, "watch", "passed_over");
      passOver(of, "watch", problem);
    };
    try {
      watching = atOnce(run(call, stop));
    } catch (problem) {
      failed(problem);
    }
    return (event) => {
      try {
        if (watching) atOnce(watching(event));
      } catch (problem) {
        failed(problem);
      }
    };
  };
}
