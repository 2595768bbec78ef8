// What several workers have against one config.
import type { LocatedProblem } from "../../config/gateway-config.ts";

/** The problems of the first that has any: they are the same everywhere. */
export async function firstProblems(
  told: readonly Promise<readonly LocatedProblem[]>[],
): Promise<readonly LocatedProblem[]> {
  // All have answered before one goes on: none is left building what is not wanted.
  await Promise.allSettled(told);
  const all = await Promise.all(told);
  return all.find((problems) => problems.some((p) => p.severity === "error")) ?? [];
}
