// Export of ledger rows, and the form for an adjustment, which is a separate row.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand, useQuery } from "../../use-query.ts";
import { runCommand, CommandError } from "../../admin-client.ts";
import { TextField } from "../../parts/fields.ts";
import { Box, Badge, CommandLineHint, ErrorNote, NoteBox } from "../../parts/basics.ts";
import { toast } from "../../parts/overlay.ts";
import {
  formatCount,
  timeDaysAgo,
  formatUsdExact,
  formatAgo,
  formatDateTime,
  formatBytes,
  formatDuration,
} from "../../format.ts";
import { Table, type Column } from "../../parts/table.ts";
import { isAllowed } from "../../session.ts";

const PAGE_ROWS = 1_000;
const MAX_ROWS = 50_000;
interface Row {
  readonly [name: string]: unknown;
}

export function ExportRows() {
  const [days, set] = useState("1");
  const [rows, tell] = useState<number>();
  const [problem, refuse] = useState<CommandError>();
  const span = Math.max(1, Math.round(Number(days)) || 1);
  const run = async (event: Event) => {
    event.preventDefault();
    refuse(undefined);
    tell(0);
    try {
      const lines: string[] = [];
      let after: string | undefined;
      do {
        const page = await runCommand<{ items: readonly Row[]; next?: string }>("ledger.entries", {
          from: timeDaysAgo(span),
          limit: PAGE_ROWS,
          ...(after !== undefined && { after }),
        });
        for (const item of page.items) lines.push(JSON.stringify(item));
        after = page.next;
        tell(lines.length);
      } while (after !== undefined && lines.length < MAX_ROWS);
      downloadLines(lines);
      toast(
        after === undefined
          ? `${formatCount(lines.length)} rows saved.`
          : `The first ${formatCount(lines.length)} rows saved. Export an archive for all rows.`,
      );
    } catch (error) {
      refuse(
        error instanceof CommandError ? error : new CommandError(0, { message: String(error) }),
      );
    } finally {
      tell(undefined);
    }
  };
  return html`<${Box} title="Export rows">
    <div class="stack">
      <form class="form" onSubmit=${run}>
        <${TextField}
          name="Number of days"
          type="number"
          value=${days}
          set=${set}
          hint=${`JSON, one row per line, up to ${formatCount(MAX_ROWS)} rows. To create a verifiable archive, use the command line.`}
        />
        <footer>
          <button type="submit" class="button" disabled=${rows !== undefined}>
            ${rows === undefined ? "Save rows" : `${formatCount(rows)} rows…`}
          </button>
        </footer>
      </form>
      ${problem && html`<${ErrorNote} problem=${problem} />`}
      <${CommandLineHint} line="tollgate ledger archive rows.jsonl.gz" />
    </div>
  <//>`;
}

function downloadLines(lines: readonly string[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    new Blob([lines.join("\n"), "\n"], { type: "application/jsonl" }),
  );
  link.download = `ledger-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function AdjustCost() {
  const [attempt, setAttempt] = useState("");
  const [usd, setUsd] = useState("");
  const [reason, setReason] = useState("");
  const adjust = useCommand<{ attempt: string; costNano: string }>("ledger.adjust");
  const run = async (event: Event) => {
    event.preventDefault();
    const done = await adjust.run({
      attempt: attempt.trim(),
      usd: usd.trim(),
      reason: reason.trim(),
    });
    if (!done) return;
    toast(`Adjustment recorded: ${formatUsdExact(done.costNano)} added to the cost of the call.`);
    setUsd("");
    setReason("");
  };
  const whole = attempt.trim() !== "" && usd.trim() !== "" && reason.trim() !== "";
  return html`<${Box} title="Correct a cost" actions=${html`<${Badge} plain=${true}>owner<//>`}>
    <form class="form" onSubmit=${run}>
      <div class="filters">
        <${TextField}
          name="Call"
          value=${attempt}
          set=${setAttempt}
          wide
          placeholder="attempt ID, from the request's page"
        />
        <${TextField}
          name="Adjustment in US dollars"
          value=${usd}
          set=${setUsd}
          placeholder="-0.25"
        />
      </div>
      <${TextField}
        name="Reason"
        value=${reason}
        set=${setReason}
        hint="Recorded permanently in the adjustment row. Existing rows are never changed."
      />
      <footer>
        <button type="submit" class="button" disabled=${!whole || adjust.isRunning}>
          Record the adjustment
        </button>
      </footer>
    </form>
    ${adjust.error && html`<${ErrorNote} problem=${adjust.error} />`}
  <//>`;
}

// Backups of this gateway, as recorded in its audit log, and the form for a new backup.

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
