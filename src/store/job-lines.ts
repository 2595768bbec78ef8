// Defines how the lines of a job share its reservation. The job's own call reserves the sum of all
// lines. A line moves its part from the job's call to a separate call, so the reserved total of a
// meter does not change. All calls of a job count in the windows in which the job was created.
import type { JobTake, Limit } from "../plugin/index.ts";
import type { LedgerRow } from "./ledger-row.ts";
import type { MeterAmount } from "./meter.ts";
import { meteredUsage } from "./metered-usage.ts";

/** A call that may belong to a job. */
interface JobMember {
  readonly attempt: string;
  /** ID of the own call of its job. */
  readonly job?: string | undefined;
}

/** Whether the call is the job's own call, which remains open until it is settled. */
export const isJobCall = ({ attempt, job }: JobMember): boolean => job === attempt;

/** A job's own call: the reserved amounts, and the amounts that its lines took, in the same order. */
interface JobReservation {
  readonly meterAmounts: readonly MeterAmount[];
  readonly lineAmounts?: readonly bigint[] | undefined;
}

/**
 * Returns the amounts that a call still reserves. For a job's own call, the amounts of the job's
 * lines are excluded.
 */
export const reservedAmounts = ({
  meterAmounts,
  lineAmounts,
}: JobReservation): readonly MeterAmount[] =>
  lineAmounts === undefined
    ? meterAmounts
    : meterAmounts.map(([id, amount], i): MeterAmount => [id, amount - (lineAmounts[i] ?? 0n)]);

/**
 * Returns the amount that a line takes from each meter of its job. It is the requested amount of the
 * meter's unit, or the remaining reservation of the job if that is less.
 */
export const lineTake = (
  job: JobReservation,
  take: JobTake,
  unitOf: (meter: string) => Limit["unit"],
): readonly MeterAmount[] =>
  reservedAmounts(job).map(([id, rest]): MeterAmount => {
    const wanted = take[unitOf(id)] ?? 0n;
    return [id, wanted < rest ? wanted : rest];
  });

/** Returns the amounts of all lines after a line took, or returned, its amounts. */
export const changeLineAmounts = (
  { meterAmounts, lineAmounts }: JobReservation,
  by: readonly bigint[],
): readonly bigint[] => meterAmounts.map((_, i) => (lineAmounts?.[i] ?? 0n) + (by[i] ?? 0n));

/**
 * Returns the usage of a settled call on a meter of this unit. A job's own call that is settled as
 * `void` made no requests: its lines did.
 */
export const settledUsage = (
  call: JobMember,
  unit: Limit["unit"],
  amount: bigint,
  settle: Pick<LedgerRow, "state" | "usage" | "costNano">,
): bigint => (settle.state === "void" && isJobCall(call) ? 0n : meteredUsage(unit, amount, settle));

/**
 * Returns the part of a line's amount that is returned to the job. A line that used nothing may be
 * sent again, so its amounts remain reserved. Otherwise, the rest is released.
 */
export const returnedToJob = (state: LedgerRow["state"], amount: bigint, used: bigint): bigint =>
  state === "void" && amount > used ? amount - used : 0n;

/** Encodes the amounts of lines, for a column of the job's open call. */
export const encodeLineAmounts = (amounts: readonly bigint[] = []): string =>
  JSON.stringify(amounts.map(String));

/** Decodes the amounts of lines. */
export const decodeLineAmounts = (text: string): readonly bigint[] =>
  (JSON.parse(text) as string[]).map(BigInt);
