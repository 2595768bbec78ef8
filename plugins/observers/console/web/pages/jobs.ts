// Jobs page: the jobs of all gateways on the store with their progress, and a button that cancels one.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand, useQuery } from "../use-query.ts";
import {
  Badge,
  Box,
  CommandLineHint,
  EmptyState,
  ErrorNote,
  Figures,
  QueryResult,
  UsageBar,
} from "../parts/basics.ts";
import { ConfirmButton, toast } from "../parts/overlay.ts";
import { Table, type Column } from "../parts/table.ts";
import { isAllowed } from "../session.ts";
import { formatAgo, formatCount, formatDateTime } from "../format.ts";

interface Job {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly model?: string;
  readonly providers?: readonly string[];
  readonly progress?: { readonly total: number; readonly done: number; readonly failed: number };
  readonly key: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly costUsd?: string;
  readonly createdAt: number;
  readonly endedAt?: number;
  readonly message?: string;
  readonly request?: string;
  readonly canCancel: boolean;
}
interface JobsResponse {
  readonly items: readonly Job[];
  readonly isTruncated: boolean;
}

const POLL_MS = 5_000;
const LIMIT = 200;

export function JobsPage() {
  const [isOpenOnly, setOpenOnly] = useState(false);
  const input = { limit: LIMIT, ...(isOpenOnly && { status: "open" }) };
  const jobs = useQuery<JobsResponse>("jobs.list", input, { intervalMs: POLL_MS });
  return html`<label class="check"
      ><input type="checkbox" checked=${isOpenOnly} onChange=${() => setOpenOnly(!isOpenOnly)} />
      Only open jobs</label
    >
    <${QueryResult} of=${jobs}
      >${(of: JobsResponse) => html`<${Sums} of=${of} /><${Jobs} of=${of} again=${jobs.refetch} />`}<//
    >
    <${CommandLineHint} line=${`tollgate jobs list${isOpenOnly ? " --status open" : ""}`} />`;
}

const isOpen = ({ status }: Job): boolean => ["queued", "running", "canceling"].includes(status);

function Sums({ of: { items } }: { of: JobsResponse }) {
  const open = items.filter(isOpen);
  const failed = items.filter(({ status }) => status === "failed").length;
  const oldest = Math.min(...open.map(({ createdAt }) => createdAt));
  return html`<${Figures}
    of=${[
      { name: "Open jobs", value: formatCount(open.length) },
      {
        name: "Oldest open job",
        value: open.length > 0 ? formatAgo(oldest) : "–",
      },
      { name: "Failed jobs", value: formatCount(failed), tone: failed > 0 ? "warn" : "" },
    ]}
  />`;
}

function Jobs({ of, again }: { of: JobsResponse; again: () => void }) {
  const cancel = useCommand<unknown>("jobs.cancel");
  const run = async ({ id }: Job) => {
    if (!(await cancel.run({ id }))) return;
    toast(`The cancellation of ${id} was requested.`);
    again();
  };
  const actions: Column<Job> = {
    name: "",
    render: (one) =>
      one.canCancel &&
      html`<${ConfirmButton}
        name="Cancel"
        what=${`Cancel the job ${one.id}`}
        run=${() => void run(one)}
      />`,
  };
  return html`<${Box} title="Jobs" flush=${true}>
    ${cancel.error && html`<${ErrorNote} problem=${cancel.error} />`}
    <${Table}
      label="Jobs, newest first"
      rows=${of.items}
      rowId=${({ id }: Job) => id}
      columns=${isAllowed("jobs.cancel") ? [...COLUMNS, actions] : COLUMNS}
      empty=${html`<${EmptyState} of="jobs"
        ><p>No job was found. Clients create batches at /v1/batches, with the frontend jobs.</p><//
      >`}
    />
    ${of.isTruncated && html`<p class="small quiet in">Older jobs are not shown.</p>`}
  <//>`;
}

const nameOf = ({ keyName, key }: Job): string => keyName ?? key;

const TONES: Readonly<Record<string, string>> = {
  running: "accent",
  canceling: "warn",
  completed: "good",
  failed: "bad",
  expired: "warn",
};

const shareOf = ({ progress }: Job): number =>
  progress && progress.total > 0 ? progress.done / progress.total : 0;

function renderProgress(one: Job) {
  const { progress } = one;
  if (!progress) return html`<span class="faint">–</span>`;
  const { done, total, failed } = progress;
  return html`<span class="nowrap"
    ><${UsageBar} of=${shareOf(one)} /> ${formatCount(done)} of
    ${formatCount(total)}${
      failed > 0 ? html`<span class="small faint">, ${formatCount(failed)} failed</span>` : null
    }</span
  >`;
}

const COLUMNS: readonly Column<Job>[] = [
  {
    name: "Job",
    isRowHeader: true,
    sortKey: ({ id }) => id,
    render: ({ id, kind }) =>
      html`<span class="cut" title=${id}>${id}</span><span class="small faint cut">${kind}</span>`,
  },
  {
    name: "Status",
    sortKey: ({ status }) => status,
    render: ({ status, message }) =>
      html`<${Badge} tone=${TONES[status] ?? ""}>${status}<//>${
          message && html`<span class="small faint cut" title=${message}>${message}</span>`
        }`,
  },
  { name: "Progress", sortKey: shareOf, render: renderProgress },
  {
    name: "Key",
    sortKey: nameOf,
    render: (one) =>
      html`<span class="cut">${nameOf(one)}</span
        >${one.account ? html`<span class="small faint cut">${one.account}</span>` : null}`,
  },
  {
    name: "Model",
    sortKey: ({ model = "" }) => model,
    render: ({ model, providers }) =>
      html`<span class="cut" title=${providers?.join(", ")}>${model ?? "–"}</span>`,
  },
  {
    name: "Cost so far",
    isNumber: true,
    sortKey: ({ costUsd }) => Number(costUsd ?? 0),
    render: ({ costUsd }) =>
      costUsd === undefined ? html`<span class="faint">–</span>` : `$${costUsd}`,
  },
  {
    name: "Created",
    isNumber: true,
    sortKey: ({ createdAt }) => createdAt,
    render: ({ createdAt, endedAt }) =>
      html`<span
        title=${`${formatDateTime(createdAt)}${endedAt ? `, ended ${formatDateTime(endedAt)}` : ""}`}
        >${formatAgo(createdAt)}</span
      >`,
  },
];
