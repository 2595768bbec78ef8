// One path to a bound: sends a number of the counted items through the code that enforces it, and
// returns the result.
import { expect } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { BOUNDS, type Bound, type BoundName } from "../../../src/lib/bounds.ts";
import { ERRORS, getFault, type Fault } from "../../../src/model/error.ts";
import { createBoundExceeded } from "../../../src/model/bound-exceeded.ts";

/** The client's response. */
export interface Told {
  readonly status: number;
  readonly text: string;
  /** The client's protocol. If unset, the listener, which responds to all clients alike. */
  readonly to?: Protocol<never>;
  /** The ledger's outcome. */
  readonly outcome?: string;
}
export type Outcome = "passes" | "beyond" | Told | { readonly fault: Fault | undefined };

export interface Way {
  readonly drive: (n: number) => Promise<Outcome> | Outcome;
  /** A smaller bound, if it is configurable or an argument. */
  readonly most?: number;
  /** Replaces the default of the kind. */
  readonly status?: number;
}

/** Paths to a bound, by name: every place that enforces it. */
export type Driver = { readonly [way: string]: Way };

export const faultIn = async (work: () => unknown): Promise<Outcome> => {
  try {
    await work();
    return "passes";
  } catch (problem) {
    return { fault: getFault(problem) };
  }
};

const short = (outcome: Outcome): string =>
  typeof outcome === "string"
    ? outcome
    : "fault" in outcome
      ? JSON.stringify(outcome.fault)
      : `${outcome.status} ${outcome.text.slice(0, 500)} … ${outcome.text.slice(-500)}`;

/** This many pass, and one more gets the listed error. */
export async function judge(name: BoundName, { drive, most, status }: Way): Promise<void> {
  const bound: Bound = BOUNDS[name];
  const at = most ?? bound.max;
  expect(short(await drive(at)), `${at} of them`).toBe("passes");
  const outcome = await drive(at + 1);
  const what = `${at + 1} of them`;
  if (!bound.error) return expect(short(outcome), what).toBe("beyond");
  const fault = getFault(createBoundExceeded(name, at))!;
  if (typeof outcome === "string") return expect(outcome, what).toBe(fault.message);
  if ("fault" in outcome)
    return expect({ ...outcome.fault }).toMatchObject({
      kind: fault.kind,
      code: fault.code,
      message: expect.stringContaining(fault.message),
    });
  // In a stream that has started, an error has the protocol's own form, with a success status.
  const { to, text } = outcome;
  const begun = to !== undefined && outcome.status === 200;
  if (!begun) expect(outcome.status, text.slice(0, 500)).toBe(status ?? ERRORS[fault.kind][0]);
  expect(text.slice(-2_000)).toContain(JSON.stringify(fault.message).slice(1, -1));
  const own = to?.server!.encodeFault(fault, { id: "x" }).body;
  if (!begun && (!own || JSON.stringify(own).includes(fault.code!)))
    expect(text).toContain(`"${fault.code}"`);
  if (outcome.outcome !== undefined) expect(outcome.outcome).toBe(fault.kind);
}
