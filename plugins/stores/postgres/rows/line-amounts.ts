// Computes the amounts that open calls still reserve, from columns.
import {
  decodeLineAmounts,
  decodeMeterAmounts,
  reservedAmounts,
  type MeterAmount,
} from "tollgate/store";

/**
 * Returns the amounts that an open call still reserves.
 * @param rest The column of the call's reserve.
 * @param lines For a job's own call, the amounts that the job's lines took.
 */
export const storedReservedAmounts = (
  rest: string | null,
  lines: string | null,
): readonly MeterAmount[] =>
  reservedAmounts({
    meterAmounts: decodeMeterAmounts(rest),
    lineAmounts: lines === null ? undefined : decodeLineAmounts(lines),
  });
