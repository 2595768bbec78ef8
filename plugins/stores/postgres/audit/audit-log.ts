// The audit log of operator commands. Each record is a note in the chain of the instance that ran
// the command.
import type { AuditEnd, AuditEntry, AuditLog } from "tollgate/plugin";
import { toAuditedCommand, fromJson, toJson, pageSize, toPage } from "tollgate/store";
import type { RunSql } from "../connection/pipelined-connection.ts";
import type { Writer } from "../writer-interface.ts";

export const createAuditLog = (writer: Writer, sql: RunSql, schema: string): AuditLog => ({
  async begin(entry) {
    const text = toJson(entry);
    await writer.appendNotes({
      notes: [{ kind: "audit", id: entry.id, at: entry.at, text }],
      statements: [
        {
          text: `INSERT INTO ${schema}.audit (id, entry) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`,
          values: [entry.id, text],
        },
      ],
      isOnce: true,
    });
  },
  async end(end) {
    const text = toJson(end);
    await writer.appendNotes({
      notes: [{ kind: "audit_end", id: end.id, at: end.at, text }],
      statements: [
        {
          text: `UPDATE ${schema}.audit SET ended = $2 WHERE id = $1 AND ended IS NULL RETURNING id`,
          values: [end.id, text],
        },
      ],
      isOnce: true,
    });
  },
  async list(page) {
    const size = pageSize(page);
    const rows = await sql({
      text: `SELECT seq, entry, ended FROM ${schema}.audit WHERE $1::bigint IS NULL OR seq < $1::bigint ORDER BY seq DESC LIMIT $2`,
      values: [page?.after ?? null, size + 1],
    });
    const found = toPage(rows, size, ({ seq }) => seq!);
    return {
      ...found,
      items: found.items.map(({ entry, ended }) =>
        toAuditedCommand(
          fromJson<AuditEntry>(entry!),
          typeof ended === "string" ? fromJson<AuditEnd>(ended) : undefined,
        ),
      ),
    };
  },
});
