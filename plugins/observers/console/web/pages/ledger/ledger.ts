// Ledger page: size, verification, preview of a prune, adjustments, and export.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand, useQuery } from "../../use-query.ts";
import { TextField } from "../../parts/fields.ts";
import {
  Box,
  CopyButton,
  FactList,
  Figures,
  NoteBox,
  CommandLineHint,
  QueryResult,
  ErrorNote,
} from "../../parts/basics.ts";
import {
  formatAgo,
  formatCount,
  timeDaysAgo,
  formatDateTime,
  formatBytes,
  formatDuration,
} from "../../format.ts";
import { isAllowed } from "../../session.ts";
import { Backups, AdjustCost, ExportRows } from "./ledger-export.ts";

interface LedgerStateResponse {
  readonly bytes: number;
  readonly oldestAt?: number | null;
  readonly prunedRows: number;
}
interface VerifyResponse {
  readonly problems: readonly { readonly path?: string; readonly message: string }[];
  readonly isVerifiable: boolean;
  readonly head?: { readonly seq: number; readonly hash: string };
  readonly containsHash?: boolean;
}
interface PrunePlanResponse {
  readonly plan: {
    readonly rows: number;
    readonly bytes: number;
    readonly ms: number;
    readonly from?: number;
    readonly to?: number;
    readonly open?: { readonly at: number; readonly attempt: string };
  };
}

export function LedgerPage() {
  const state = useQuery<LedgerStateResponse>("ledger.status", {}, { intervalMs: 15_000 });
  const readings = useQuery<{ ledger: { ok: boolean; queue: number } }>(
    "stats",
    {},
    { intervalMs: 5_000 },
  );
  const { ok = true, queue = 0 } = readings.value?.ledger ?? {};
  return html` <${QueryResult} of=${state}
      >${(value: LedgerStateResponse) =>
        html`<${Figures}
          of=${[
            {
              name: "Available",
              value: ok ? "yes" : "no",
              note: ok ? `${formatCount(queue)} commands queued` : "new calls are rejected",
              tone: ok ? "good" : "bad",
            },
            {
              name: "Size on disk",
              value: formatBytes(value.bytes),
              title: `${formatCount(value.bytes)} bytes`,
            },
            {
              name: "Oldest row",
              value: value.oldestAt == null ? "none" : formatAgo(value.oldestAt),
              title: value.oldestAt == null ? undefined : formatDateTime(value.oldestAt),
            },
            {
              name: "Pruned rows",
              value: formatCount(value.prunedRows),
              note: value.prunedRows > 0 ? "replaced by totals" : "no rows were pruned",
            },
          ]}
        />`}<//
    >
    <div class="grid">
      ${isAllowed("ledger.verify") && html`<${Verify} />`}
      ${isAllowed("ledger.prune") && html`<${Prune} />`}
    </div>
    ${isAllowed("audit.list") && html`<${Backups} />`}
    <div class="grid">
      ${isAllowed("ledger.entries") && html`<${ExportRows} />`}
      ${isAllowed("ledger.adjust") && html`<${AdjustCost} />`}
    </div>`;
}

function Verify() {
  const [hash, note] = useState("");
  const verify = useCommand<VerifyResponse>("ledger.verify", { changes: false });
  const [took, time] = useState<number>();
  const run = async (event: Event) => {
    event.preventDefault();
    const began = performance.now();
    await verify.run(hash.trim() ? { hash: hash.trim() } : {});
    time(performance.now() - began);
  };
  const { value } = verify;
  const fine = value && value.problems.length === 0 && value.containsHash !== false;
  return html`<${Box} title="Verify the ledger">
    <div class="stack">
      <form class="form" onSubmit=${run}>
        <${TextField}
          name="Recorded hash"
          value=${hash}
          set=${note}
          hint="Optional. Verifies that this hash is still part of the chain."
        />
        <footer>
          <button type="submit" class="button main" disabled=${verify.isRunning}>
            ${verify.isRunning ? "Reading every row…" : "Verify now"}
          </button>
        </footer>
      </form>
      <div aria-live="polite" class="stack">
        ${verify.error && html`<${ErrorNote} problem=${verify.error} />`}
        ${
          value &&
          !verify.isRunning &&
          html`<${NoteBox} tone=${fine ? "good" : value.isVerifiable ? "bad" : "warn"}>
              <p>
                ${!value.isVerifiable ? "This store has no hash chain." : fine ? `The ledger is valid. Every row was read in ${formatDuration(took)}.` : "The ledger was changed after it was written."}
              </p>
              ${value.containsHash === false && html`<p>The ledger does not contain this hash. The ledger was truncated, or it is a different one.</p>`}
              ${value.problems.slice(0, 20).map(({ path, message }) => html`<p key=${path}>${path && html`<code>${path}</code> `}${message}</p>`)}<//
            >
            ${
              value.head &&
              html`<${FactList}
                  of=${[
                    ["Newest hash", html`<span class="mono break">${value.head.hash}</span>`],
                    ["Commit", formatCount(value.head.seq)],
                  ]}
                />
                <div class="row">
                  <${CopyButton} text=${value.head.hash} name="Copy the hash" /><span
                    class="small faint"
                    >Store it elsewhere. You can use it later to detect whether the ledger was
                    truncated.</span
                  >
                </div>`
            }`
        }
        <${CommandLineHint} line="tollgate ledger verify" />
      </div>
    </div>
  <//>`;
}

function Prune() {
  const [days, set] = useState("400");
  const plan = useCommand<PrunePlanResponse>("ledger.prune", { changes: false });
  const older = Math.max(1, Math.round(Number(days)) || 400);
  const run = (event: Event) => {
    event.preventDefault();
    void plan.run({ before: timeDaysAgo(older), dryRun: true });
  };
  const found = plan.value?.plan;
  return html`<${Box} title="Plan a prune">
    <div class="stack">
      <form class="form" onSubmit=${run}>
        <${TextField}
          name="Rows older than, in days"
          type="number"
          value=${days}
          set=${set}
          hint="Totals replace the rows. Reports, budgets, and verification do not change. This is only a dry run."
        />
        <footer>
          <button type="submit" class="button" disabled=${plan.isRunning}>
            ${plan.isRunning ? "Counting…" : "Plan"}
          </button>
        </footer>
      </form>
      <div aria-live="polite" class="stack">
        ${plan.error && html`<${ErrorNote} problem=${plan.error} />`}
        ${
          found &&
          html`<${FactList}
            of=${[
              ["Rows", formatCount(found.rows)],
              [
                "Between",
                found.from && found.to
                  ? `${formatDateTime(found.from)} and ${formatDateTime(found.to)}`
                  : "no rows are old enough",
              ],
              ["Freed disk space", `about ${formatBytes(found.bytes)}`],
              ["Estimated duration", `about ${formatDuration(found.ms)}`],
              [
                "Limited by",
                found.open &&
                  html`<span class="warn"
                    >an open call of ${formatDateTime(found.open.at)}:
                    <code>${found.open.attempt}</code></span
                  >`,
              ],
            ]}
          />`
        }
        <${CommandLineHint} line=${`tollgate ledger prune --older ${older}d --dry-run`} />
      </div>
    </div>
  <//>`;
}
