import { boundMessage, BOUNDS, type BoundName } from "../lib/bounds.ts";
import { createFault, type Fault } from "./error.ts";

/** Throws what `excess` makes. */
export function failBoundExceeded(
  bound: BoundName,
  most?: number,
  more?: Omit<Fault, "kind" | "message" | "code">,
): never {
  throw createBoundExceeded(bound, most, more);
}

/** The fault of there being more of something than there may be. `most`: an operator's own number. */
export function createBoundExceeded(
  bound: BoundName,
  most?: number,
  more?: Omit<Fault, "kind" | "message" | "code">,
): Error {
  const [kind, code] = BOUNDS[bound].error ?? (["internal", bound] as const);
  return createFault(kind, boundMessage(bound, most), { ...more, code });
}

const BOUND_CODES: ReadonlySet<string> = new Set(
  Object.values(BOUNDS).flatMap((bound) => (bound.error ? [bound.error[1]] : [])),
);

/** Whether it says that there was more of something than there may be. */
export const isBoundExceeded = ({ code }: Fault): boolean =>
  typeof code === "string" && BOUND_CODES.has(code);
