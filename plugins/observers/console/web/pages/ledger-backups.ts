// Backups that were made of this gateway, as its audit log has them, and a new one.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { useAsk } from "../data.ts";
import { Text } from "../parts/fields.ts";
import { Box, Mark, NoteBox, SameAs, Trouble } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { may } from "../rights.ts";
import { ago, count, moment, size, span } from "../words.ts";

interface Audited {
  readonly id: string;
  readonly at: number;
  readonly actor: string;
  readonly command: string;
  readonly target?: string;
  readonly outcome: "done" | "failed" | "unknown";
  readonly code?: string;
}

/** Of the newest so many commands. */
const LOOKED_AT = 1_000;
const SHOWN = 20;

const COLUMNS: readonly Column<Audited>[] = [
  {
    name: "When",
    head: true,
    of: ({ at }) => html`<span class="nowrap" title=${moment(at)}>${ago(at)}</span>`,
  },
  { name: "File", of: ({ target }) => html`<code class="break">${target}</code>` },
  { name: "By", of: ({ actor }) => html`<span class="break">${actor}</span>` },
  {
    name: "Outcome",
    of: ({ outcome, code }) =>
      html`<${Mark} tone=${outcome === "done" ? "good" : "bad"}>${code ?? outcome}<//>`,
  },
];

export function Backups() {
  const log = useAsk<{ items: readonly Audited[] }>(
    "audit.list",
    { limit: LOOKED_AT },
    { every: 30_000 },
  );
  const made = (log.value?.items ?? []).filter(({ command }) => command === "backup");
  const last = made.find(({ outcome }) => outcome === "done");
  return html`<${Box} title="Backups">
    <div class="stack">
      ${log.value && !last && html`<${NoteBox} tone="warn"><p>None of the last ${count(LOOKED_AT)} commands has made one.</p><//>`}
      ${
        made.length > 0 &&
        html`<${Table}
          label="Backups"
          columns=${COLUMNS}
          rows=${made.slice(0, SHOWN)}
          id=${({ id }: Audited) => id}
        />`
      }
      ${may("backup") && html`<${New} made=${log.again} />`}
    </div>
  <//>`;
}

/** `made`: one was, and stands in the log. */
function New({ made }: { made: () => void }) {
  const [file, set] = useState("");
  const backup = useAct<{ file: string; bytes: number; ms: number }>("backup");
  const run = (event: Event) => {
    event.preventDefault();
    void backup.run({ file: file.trim() }).then((done) => done && made());
  };
  const { value } = backup;
  return html`<form class="form" onSubmit=${run}>
      <${Text}
        name="A new file on the gateway's machine"
        value=${file}
        set=${set}
        required=${true}
        placeholder="/var/backups/tollgate.tar"
        hint="Ledger, keys and limits as of one moment; the gateway goes on serving."
      />
      <footer>
        <button type="submit" class="button" disabled=${backup.busy || file.trim() === ""}>
          ${backup.busy ? "Copying…" : "Back up now"}
        </button>
      </footer>
    </form>
    <div aria-live="polite" class="stack">
      ${backup.problem && html`<${Trouble} problem=${backup.problem} />`}
      ${
        value &&
        !backup.busy &&
        html`<${NoteBox} tone="good"
          ><p>${size(value.bytes)} in <code>${value.file}</code>, in ${span(value.ms)}.</p><//
        >`
      }
      <${SameAs} line=${`tollgate backup ${file.trim() || "<file>"}`} />
    </div>`;
}
