import { boundMessage, BOUNDS, type BoundName } from "../lib/bounds.ts";
import { createFault, type Fault } from "./error.ts";

/** Throws the error of `createBoundExceeded`. */
export function failBoundExceeded(
  bound: BoundName,
  most?: number,
  more?: Omit<Fault, "kind" | "message" | "code">,
): never {
  throw createBoundExceeded(bound, most, more);
}

/** Creates the error for a bound that is exceeded. `most`: the limit, if an operator changed it. */
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

/** Whether a fault reports that a bound was exceeded. */
export const isBoundExceeded = ({ code }: Fault): boolean =>
  typeof code === "string" && BOUND_CODES.has(code);
