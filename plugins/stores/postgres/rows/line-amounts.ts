// Computes the amounts that open calls still reserve, from columns.
import {
  decodeLineAmounts,
  decodeMeterAmounts,
  reservedAmounts,
  type MeterAmount,
} from "tollgate/store";

/**
 * Returns what an open call still reserves.
 * @param rest The column of its reserve.
 * @param lines For a job's own call, the amounts that its lines took.
 */
export const storedReservedAmounts = (
  rest: string | null,
  lines: string | null,
): readonly MeterAmount[] =>
  reservedAmounts({
    meterAmounts: decodeMeterAmounts(rest),
    lineAmounts: lines === null ? undefined : decodeLineAmounts(lines),
  });
