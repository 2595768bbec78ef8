// One way to a bound: so many of what it counts are sent through what keeps to it, and told is what came of that.
import { expect } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { BOUNDS, type Bound, type BoundName } from "../../../src/lib/bounds.ts";
import { ERRORS, getFault, type Fault } from "../../../src/model/error.ts";
import { createBoundExceeded } from "../../../src/model/bound-exceeded.ts";

/** What a client was told. */
export interface Told {
  readonly status: number;
  readonly text: string;
  /** Whose client it was; the door's, which speaks to every client alike, when it is absent. */
  readonly to?: Protocol<never>;
  /** What the ledger calls it. */
  readonly outcome?: string;
}
export type Outcome = "passes" | "beyond" | Told | { readonly fault: Fault | undefined };

export interface Way {
  readonly drive: (n: number) => Promise<Outcome> | Outcome;
  /** A smaller bound, where an operator may set one or the code takes one. */
  readonly most?: number;
  /** In place of the kind's own. */
  readonly status?: number;
}

/** By name, the ways to a bound: every place that keeps to it. */
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

/** So many pass, and of one more is said what the list says. */
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
  // Into a stream that has begun an error is written in the protocol's own way, behind a good status.
  const { to, text } = outcome;
  const begun = to !== undefined && outcome.status === 200;
  if (!begun) expect(outcome.status, text.slice(0, 500)).toBe(status ?? ERRORS[fault.kind][0]);
  expect(text.slice(-2_000)).toContain(JSON.stringify(fault.message).slice(1, -1));
  const own = to?.server!.encodeFault(fault, { id: "x" }).body;
  if (!begun && (!own || JSON.stringify(own).includes(fault.code!)))
    expect(text).toContain(`"${fault.code}"`);
  if (outcome.outcome !== undefined) expect(outcome.outcome).toBe(fault.kind);
}
