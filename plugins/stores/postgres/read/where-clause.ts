// Converts the conditions of a query to SQL on the columns of a row `e`.
import type { LedgerQuery } from "tollgate/plugin";
import { toColumnText } from "tollgate/store";

/** Collects the parameters of a statement. */
export class SqlParameters {
  readonly all: (string | number)[] = [];

  /** Adds a value and returns its placeholder. Text is encoded as the columns store it. */
  add(value: string | number): string {
    return `$${this.all.push(typeof value === "string" ? toColumnText(value) : value)}`;
  }
}

/**
 * Returns the conditions of a query, starting with `true`.
 * @param schema If unset, `e` is a rollup of settled rows instead of a row.
 */
export function whereClause(
  query: LedgerQuery,
  schema: string | undefined,
  values: SqlParameters,
): string {
  const all: string[] = ["true"];
  const same = (column: string, value: string | undefined) =>
    void (value !== undefined && all.push(`e.${column} = ${values.add(value)}`));
  same("key", query.key);
  same("attempt", query.attempt);
  same("upstream_id", query.upstreamId);
  same("provider", query.provider);
  same("credential", query.credential);
  same("frontend", query.frontend);
  same("outcome", query.outcome);
  if (query.from !== undefined) all.push(`e.at >= ${values.add(Math.ceil(query.from))}`);
  if (query.to !== undefined) all.push(`e.at < ${values.add(Math.ceil(query.to))}`);
  if (query.state !== undefined) {
    same("state", query.state);
    if (schema !== undefined)
      all.push(
        `(e.kind <> 0 OR EXISTS (SELECT 1 FROM ${schema}.open_call o WHERE o.attempt = e.attempt AND o.started_at = e.started_at))`,
      );
  }
  if (query.account !== undefined)
    all.push(
      `strpos('/' || e.account || '/', '/' || ${values.add(query.account)}::text || '/') > 0`,
    );
  if (query.model !== undefined) {
    const model = values.add(query.model);
    all.push(`(e.model = ${model} OR e.provider || '/' || e.model = ${model})`);
  }
  if (query.label !== undefined)
    all.push(
      `EXISTS (SELECT 1 FROM json_each_text(e.labels::json) l WHERE l.key || '=' || l.value = ${values.add(query.label)})`,
    );
  return all.join(" AND ");
}
