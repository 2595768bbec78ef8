// The ledger: how large it is, whether it is what was written, what a prune would take out, a correction, and rows to take along.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { useAsk } from "../data.ts";
import { Text } from "../parts/fields.ts";
import {
  Box,
  CopyButton,
  Facts,
  Figures,
  NoteBox,
  SameAs,
  Shown,
  Trouble,
} from "../parts/plain.ts";
import { ago, count, daysAgo, moment, size, span } from "../words.ts";
import { may } from "../rights.ts";
import { Backups } from "./ledger-backups.ts";
import { Correct, Export } from "./ledger-rows.ts";

interface State {
  readonly bytes: number;
  readonly oldest?: number | null;
  readonly prunedRows: number;
}
interface Verified {
  readonly problems: readonly { readonly path?: string; readonly message: string }[];
  readonly verifiable: boolean;
  readonly head?: { readonly seq: number; readonly hash: string };
  readonly holds?: boolean;
}
interface Plan {
  readonly plan: {
    readonly rows: number;
    readonly bytes: number;
    readonly ms: number;
    readonly from?: number;
    readonly to?: number;
    readonly open?: { readonly at: number; readonly attempt: string };
  };
}

export function Ledger() {
  const state = useAsk<State>("ledger.state", {}, { every: 15_000 });
  const readings = useAsk<{ ledger: { ok: boolean; queue: number } }>(
    "readings",
    {},
    { every: 5_000 },
  );
  const { ok = true, queue = 0 } = readings.value?.ledger ?? {};
  return html` <${Shown} of=${state}
      >${(value: State) =>
        html`<${Figures}
          of=${[
            {
              name: "Takes rows",
              value: ok ? "yes" : "no",
              note: ok ? `${count(queue)} wait for their batch` : "new calls are refused",
              tone: ok ? "good" : "bad",
            },
            { name: "On the disk", value: size(value.bytes), title: `${count(value.bytes)} bytes` },
            {
              name: "Oldest row",
              value: value.oldest == null ? "none" : ago(value.oldest),
              title: value.oldest == null ? undefined : moment(value.oldest),
            },
            {
              name: "Pruned rows",
              value: count(value.prunedRows),
              note: value.prunedRows > 0 ? "their sums stand for them" : "all rows are there",
            },
          ]}
        />`}<//
    >
    <div class="grid">
      ${may("ledger.verify") && html`<${Verify} />`} ${may("ledger.prune") && html`<${Prune} />`}
    </div>
    ${may("audit.list") && html`<${Backups} />`}
    <div class="grid">
      ${may("ledger.entries") && html`<${Export} />`}
      ${may("ledger.adjust") && html`<${Correct} />`}
    </div>`;
}

function Verify() {
  const [hash, note] = useState("");
  const verify = useAct<Verified>("ledger.verify", { changes: false });
  const [took, time] = useState<number>();
  const run = async (event: Event) => {
    event.preventDefault();
    const began = performance.now();
    await verify.run(hash.trim() ? { hash: hash.trim() } : {});
    time(performance.now() - began);
  };
  const { value } = verify;
  const fine = value && value.problems.length === 0 && value.holds !== false;
  return html`<${Box} title="Is it what was written?">
    <div class="stack">
      <form class="form" onSubmit=${run}>
        <${Text}
          name="A hash that was noted down"
          value=${hash}
          set=${note}
          hint="It must still be in the chain. Without one, the chain alone is proved."
        />
        <footer>
          <button type="submit" class="button main" disabled=${verify.busy}>
            ${verify.busy ? "Reading every row…" : "Verify now"}
          </button>
        </footer>
      </form>
      <div aria-live="polite" class="stack">
        ${verify.problem && html`<${Trouble} problem=${verify.problem} />`}
        ${
          value &&
          !verify.busy &&
          html`<${NoteBox} tone=${fine ? "good" : value.verifiable ? "bad" : "warn"}>
              <p>
                ${!value.verifiable ? "This store keeps no chain of hashes." : fine ? `As it was written. Every row was read in ${span(took)}.` : "It is not what was written."}
              </p>
              ${value.holds === false && html`<p>The hash that you noted is not in it: the ledger was shortened, or is another one.</p>`}
              ${value.problems.slice(0, 20).map(({ path, message }) => html`<p key=${path}>${path && html`<code>${path}</code> `}${message}</p>`)}<//
            >
            ${
              value.head &&
              html`<${Facts}
                  of=${[
                    ["Newest hash", html`<span class="mono break">${value.head.hash}</span>`],
                    ["Commit", count(value.head.seq)],
                  ]}
                />
                <div class="row">
                  <${CopyButton} text=${value.head.hash} name="Copy the hash" /><span
                    class="small faint"
                    >Note it somewhere else: with it a shortened ledger is found out.</span
                  >
                </div>`
            }`
        }
        <${SameAs} line="tollgate ledger verify" />
      </div>
    </div>
  <//>`;
}

function Prune() {
  const [days, set] = useState("400");
  const plan = useAct<Plan>("ledger.prune", { changes: false });
  const older = Math.max(1, Math.round(Number(days)) || 400);
  const run = (event: Event) => {
    event.preventDefault();
    void plan.run({ before: daysAgo(older), dryRun: true });
  };
  const found = plan.value?.plan;
  return html`<${Box} title="What would a prune take out?">
    <div class="stack">
      <form class="form" onSubmit=${run}>
        <${Text}
          name="Rows older than, in days"
          type="number"
          value=${days}
          set=${set}
          hint="Sums take their place: reports, budgets and the proof stay what they were. This only plans."
        />
        <footer>
          <button type="submit" class="button" disabled=${plan.busy}>
            ${plan.busy ? "Counting…" : "Plan"}
          </button>
        </footer>
      </form>
      <div aria-live="polite" class="stack">
        ${plan.problem && html`<${Trouble} problem=${plan.problem} />`}
        ${
          found &&
          html`<${Facts}
            of=${[
              ["Rows", count(found.rows)],
              [
                "Between",
                found.from && found.to
                  ? `${moment(found.from)} and ${moment(found.to)}`
                  : "no rows are that old",
              ],
              ["Room given back", `about ${size(found.bytes)}`],
              ["It would take", `about ${span(found.ms)}`],
              [
                "Held back by",
                found.open &&
                  html`<span class="warn"
                    >an open call of ${moment(found.open.at)}:
                    <code>${found.open.attempt}</code></span
                  >`,
              ],
            ]}
          />`
        }
        <${SameAs} line=${`tollgate ledger prune --older ${older}d --dry-run`} />
      </div>
    </div>
  <//>`;
}
