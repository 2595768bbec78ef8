// An audit log in memory that keeps the most recent entries.
import type { AuditedCommand, AuditEnd, AuditEntry, AuditLog } from "../plugin/index.ts";

const MAX_ENTRIES = 10_000;
const DEFAULT_PAGE_SIZE = 100;

/** Combines an entry with its end. If the end is not known, the outcome is `unknown`. */
export const toAuditedCommand = (entry: AuditEntry, end: AuditEnd | undefined): AuditedCommand => ({
  ...entry,
  outcome: end?.outcome ?? "unknown",
  ...(end?.code !== undefined && { code: end.code }),
});

/**
 * Creates an audit log for a store that ends with its process. Entries are copied when they are
 * stored and when they are returned.
 */
export function createMemoryAuditLog(): AuditLog {
  const entries = new Map<number, AuditEntry>();
  const ends = new Map<string, AuditEnd>();
  let last = 0;
  return {
    async begin(entry) {
      entries.set(++last, structuredClone(entry));
      const old = last - MAX_ENTRIES;
      ends.delete(entries.get(old)?.id ?? "");
      entries.delete(old);
    },
    async end(end) {
      ends.set(end.id, structuredClone(end));
    },
    async list(page) {
      const limit = page?.limit ?? DEFAULT_PAGE_SIZE;
      const from = page?.after === undefined ? last : Number(page.after) - 1;
      const items: AuditedCommand[] = [];
      let at = from;
      for (; at > 0 && items.length < limit; at--) {
        const entry = entries.get(at);
        if (!entry) break;
        items.push(structuredClone(toAuditedCommand(entry, ends.get(entry.id))));
      }
      return entries.has(at) ? { items, next: String(at + 1) } : { items };
    },
  };
}
