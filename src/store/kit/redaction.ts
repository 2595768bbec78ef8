// Erases texts of keys and accounts.
import type { AccountRecord, ErasureRequest, KeyRecord } from "../../plugin/index.ts";
import { ERASED } from "./salted-text.ts";

/** Whether a text is to be erased. `name` is the label's name, or null for the record's name. */
export type TextFilter = (name: string | null, text: string) => boolean;

/**
 * Returns the filter for the texts of a record, or undefined for a request by hashes, which only
 * the store can resolve.
 */
export function textFilter(
  what: ErasureRequest,
  kind: "key" | "account",
  id: string,
): TextFilter | undefined {
  if ("hashes" in what) return undefined;
  if ("key" in what) return () => kind === "key" && id === what.key;
  const { name: label, value } = what.label;
  return (name, text) => name === label && text === value;
}

/** Returns the record without the texts, or undefined if it contains none of them. */
export function redactRecord<R extends Pick<KeyRecord | AccountRecord, "name" | "labels">>(
  record: R,
  matches: TextFilter,
): R | undefined {
  let changed = false;
  const redact = (name: string | null, text: string): string => {
    if (text === ERASED || !matches(name, text)) return text;
    changed = true;
    return ERASED;
  };
  const name = record.name === undefined ? undefined : redact(null, record.name);
  const labels =
    record.labels &&
    Object.fromEntries(
      Object.entries(record.labels).map(([label, text]) => [
        label,
        text === undefined ? text : redact(label, text),
      ]),
    );
  if (!changed) return undefined;
  return { ...record, ...(name !== undefined && { name }), ...(labels && { labels }) };
}
