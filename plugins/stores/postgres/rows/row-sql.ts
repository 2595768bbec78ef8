// SQL that reads ledger rows.
import { ALL_COLUMNS, COLUMN_TYPES, ROW_COLUMNS } from "tollgate/store";

/** Select list for rows `e` and their node `w`. */
export const ROW_SELECT_SQL = `${ALL_COLUMNS.map((name) => `e.${name}`).join(", ")}, w.id AS instance`;

/** SQL join of a row with the node that wrote it. */
export const nodeJoinSql = (schema: string): string => `JOIN ${schema}.node w ON w.epoch = e.node`;

const NUMBERS = ROW_COLUMNS.filter((name) => name in COLUMN_TYPES);
const TEXTS = ROW_COLUMNS.filter((name) => !(name in COLUMN_TYPES));

/**
 * SQL that builds the chain line of a row, as `chainLine` does. Reading one text takes a third of
 * the time of reading all columns.
 */
export const CHAIN_LINE_SQL = `concat(${[
  ...NUMBERS.map((name) => `e.${name}, ' '`),
  ...TEXTS.map((name) => `octet_length(e.${name}), ' '`),
  ...TEXTS.map((name) => `e.${name}`),
].join(", ")})`;
