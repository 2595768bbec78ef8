import { beyond, BOUNDS, type BoundName } from "../lib/bounds.ts";
import { fault, type Fault } from "./error.ts";

/** Throws what `excess` makes. */
export function exceed(
  bound: BoundName,
  most?: number,
  more?: Omit<Fault, "kind" | "message" | "code">,
): never {
  throw excess(bound, most, more);
}

/** The fault of there being more of something than there may be. `most`: an operator's own number. */
export function excess(
  bound: BoundName,
  most?: number,
  more?: Omit<Fault, "kind" | "message" | "code">,
): Error {
  const [kind, code] = BOUNDS[bound].error ?? (["internal", bound] as const);
  return fault(kind, beyond(bound, most), { ...more, code });
}

const CODES: ReadonlySet<string> = new Set(
  Object.values(BOUNDS).flatMap((bound) => (bound.error ? [bound.error[1]] : [])),
);

/** Whether it says that there was more of something than there may be. */
export const isExcess = ({ code }: Fault): boolean => typeof code === "string" && CODES.has(code);
