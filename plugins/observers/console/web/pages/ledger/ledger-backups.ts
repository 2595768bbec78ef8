// Backups of this gateway, as recorded in its audit log, and the form for a new one.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand } from "../../use-command.ts";
import { useQuery } from "../../use-query.ts";
import { TextField } from "../../parts/fields.ts";
import { Box, Badge, NoteBox, CommandLineHint, ErrorNote } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { isAllowed } from "../../permissions.ts";
import {
  formatAgo,
  formatCount,
  formatDateTime,
  formatBytes,
  formatDuration,
} from "../../format.ts";

interface BackupAuditRow {
  readonly id: string;
  readonly at: number;
  readonly actor: string;
  readonly command: string;
  readonly target?: string;
  readonly outcome: "done" | "failed" | "unknown";
  readonly code?: string;
}

/** Number of newest audit entries to search for backups. */
const SEARCHED_COMMANDS = 1_000;
const MAX_SHOWN = 20;

const COLUMNS: readonly Column<BackupAuditRow>[] = [
  {
    name: "When",
    isRowHeader: true,
    render: ({ at }) =>
      html`<span class="nowrap" title=${formatDateTime(at)}>${formatAgo(at)}</span>`,
  },
  { name: "File", render: ({ target }) => html`<code class="break">${target}</code>` },
  { name: "By", render: ({ actor }) => html`<span class="break">${actor}</span>` },
  {
    name: "Outcome",
    render: ({ outcome, code }) =>
      html`<${Badge} tone=${outcome === "done" ? "good" : "bad"}>${code ?? outcome}<//>`,
  },
];

export function Backups() {
  const log = useQuery<{ items: readonly BackupAuditRow[] }>(
    "audit.list",
    { limit: SEARCHED_COMMANDS },
    { intervalMs: 30_000 },
  );
  const made = (log.value?.items ?? []).filter(({ command }) => command === "backup");
  const last = made.find(({ outcome }) => outcome === "done");
  return html`<${Box} title="Backups">
    <div class="stack">
      ${log.value && !last && html`<${NoteBox} tone="warn"><p>None of the last ${formatCount(SEARCHED_COMMANDS)} commands created a backup.</p><//>`}
      ${
        made.length > 0 &&
        html`<${Table}
          label="Backups"
          columns=${COLUMNS}
          rows=${made.slice(0, MAX_SHOWN)}
          rowId=${({ id }: BackupAuditRow) => id}
        />`
      }
      ${isAllowed("backup") && html`<${NewBackup} made=${log.refetch} />`}
    </div>
  <//>`;
}

/**
 * Form for a new backup. `made` is called when a backup is complete and recorded in the audit log.
 */
function NewBackup({ made }: { made: () => void }) {
  const [file, set] = useState("");
  const backup = useCommand<{ file: string; bytes: number; ms: number }>("backup");
  const run = (event: Event) => {
    event.preventDefault();
    void backup.run({ file: file.trim() }).then((done) => done && made());
  };
  const { value } = backup;
  return html`<form class="form" onSubmit=${run}>
      <${TextField}
        name="New file on the gateway's machine"
        value=${file}
        set=${set}
        required=${true}
        placeholder="/var/backups/tollgate.tar"
        hint="Consistent snapshot of the ledger, keys, and limits. The gateway continues to serve."
      />
      <footer>
        <button type="submit" class="button" disabled=${backup.isRunning || file.trim() === ""}>
          ${backup.isRunning ? "Copying…" : "Back up now"}
        </button>
      </footer>
    </form>
    <div aria-live="polite" class="stack">
      ${backup.error && html`<${ErrorNote} problem=${backup.error} />`}
      ${
        value &&
        !backup.isRunning &&
        html`<${NoteBox} tone="good"
          ><p>
            ${formatBytes(value.bytes)} in <code>${value.file}</code>, in
            ${formatDuration(value.ms)}.
          </p><//
        >`
      }
      <${CommandLineHint} line=${`tollgate backup ${file.trim() || "<file>"}`} />
    </div>`;
}
