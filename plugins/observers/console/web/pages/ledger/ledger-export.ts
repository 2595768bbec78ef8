// Export of ledger rows, and the form for an adjustment, which is a row of its own.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand } from "../../use-command.ts";
import { runCommand, CommandError } from "../../admin-client.ts";
import { TextField } from "../../parts/fields.ts";
import { Box, Badge, CommandLineHint, ErrorNote } from "../../parts/basics.ts";
import { toast } from "../../parts/toasts.ts";
import { formatCount, timeDaysAgo, formatUsdExact } from "../../format.ts";

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
