// What operators have done, in the chain of the instance that they did it at.
import type { AuditEnd, AuditEntry, AuditLog } from "tollgate/plugin";
import { auditedAs, fromJson, toJson } from "tollgate/store";
import type { Ask } from "./line.ts";
import type { Writer } from "./writing-door.ts";

const USUAL = 100;
const MOST = 1_000;

export const auditOf = (writer: Writer, ask: Ask, s: string): AuditLog => ({
  async begin(entry) {
    const text = toJson(entry);
    await writer.note({
      notes: [{ kind: "audit", id: entry.id, at: entry.at, text }],
      with: [
        {
          text: `INSERT INTO ${s}.audit (id, entry) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`,
          values: [entry.id, text],
        },
      ],
      once: true,
    });
  },
  async end(end) {
    const text = toJson(end);
    await writer.note({
      notes: [{ kind: "ended", id: end.id, at: end.at, text }],
      with: [
        {
          text: `UPDATE ${s}.audit SET ended = $2 WHERE id = $1 AND ended IS NULL RETURNING id`,
          values: [end.id, text],
        },
      ],
      once: true,
    });
  },
  async list(page) {
    const size = Math.max(1, Math.min(MOST, Math.floor(page?.limit ?? USUAL)));
    const rows = await ask({
      text: `SELECT seq, entry, ended FROM ${s}.audit WHERE $1::bigint IS NULL OR seq < $1::bigint ORDER BY seq DESC LIMIT $2`,
      values: [page?.after ?? null, size + 1],
    });
    const items = rows
      .slice(0, size)
      .map(({ entry, ended }) =>
        auditedAs(
          fromJson<AuditEntry>(entry!),
          typeof ended === "string" ? fromJson<AuditEnd>(ended) : undefined,
        ),
      );
    return rows.length > size ? { items, next: rows[size - 1]!["seq"]! } : { items };
  },
});
