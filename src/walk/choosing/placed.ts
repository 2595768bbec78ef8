// The station's own words to a pick: what it may know of a request, and where it measures.
import type { Resolution } from "../candidates/resolution.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate } from "../mounted.ts";
import type { PickInputs } from "./pick.ts";
import { picked } from "./rules.ts";

/** What is known where a request is routed. `supposed`: in place of chance and of what was measured, where nothing is asked. */
export interface Placing extends Pick<PickInputs, "x" | "frontend" | "survey" | "work"> {
  readonly gen: Pick<Generation, "usual">;
  readonly supposed?: Pick<PickInputs, "chance" | "reckoned">;
}

/** In the order in which they would be asked if all are well. */
export function placed(
  of: Placing,
  { choice }: Resolution,
  candidates: readonly HostCandidate[],
): readonly HostCandidate[] {
  if (!choice || candidates.length < 2) return candidates;
  const { x, frontend, survey, work, gen } = of;
  const supposed = of.supposed ?? live(x.stream);
  return picked(candidates, choice, { x, frontend, survey, work, usual: gen.usual, ...supposed });
}

function live(stream: boolean): Pick<PickInputs, "chance" | "reckoned"> {
  const now = performance.now();
  return {
    chance: Math.random,
    reckoned: ({ "~": { target } }) => target.timed(stream).reckoned(now),
  };
}
