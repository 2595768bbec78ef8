import { fail, type JsonObject } from "tollgate/plugin";

/**
 * Default page size of clients of the messages protocol. OpenAI's clients send no limit and expect
 * the whole list.
 */
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;

/** Creates one page of a list, with the fields that OpenAI's and Anthropic's SDKs each read. */
export function createListPage(
  rows: readonly (JsonObject & { id: string })[],
  query: URLSearchParams,
  paged: boolean,
): JsonObject {
  const limit = limitOf(query.get("limit")) ?? (paged ? DEFAULT_LIMIT : rows.length);
  const after = query.get("after_id");
  const before = query.get("before_id");
  if (after !== null && before !== null)
    fail("invalid", "after_id and before_id cannot be used together.", { param: "before_id" });
  const at = (id: string, param: string): number => {
    const found = rows.findIndex((row) => row.id === id);
    return found >= 0
      ? found
      : fail("invalid", `${param} must be the ID of a model in the list.`, { param });
  };
  let from = 0;
  let to = rows.length;
  if (after !== null) from = at(after, "after_id") + 1;
  if (before !== null) {
    to = at(before, "before_id");
    from = Math.max(0, to - limit);
  }
  const data = rows.slice(from, Math.min(to, from + limit));
  return {
    object: "list",
    data,
    has_more: before === null ? from + data.length < rows.length : from > 0,
    first_id: data[0]?.id ?? null,
    last_id: data[data.length - 1]?.id ?? null,
  };
}

function limitOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > MAX_LIMIT)
    fail("invalid", `limit must be a number from 1 to ${MAX_LIMIT}.`, { param: "limit" });
  return limit;
}
