// Audit page: each change with its actor, origin, and previous state. Every entry is part of the
// ledger's hash chain.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { runCommand } from "../admin-client.ts";
import { useQuery } from "../use-query.ts";
import { TextField } from "../parts/fields.ts";
import { Drawer, toast } from "../parts/overlay.ts";
import {
  Box,
  Code,
  EmptyState,
  FactList,
  Badge,
  CommandLineHint,
  QueryResult,
  type Tone,
} from "../parts/basics.ts";
import { Table } from "../parts/table.ts";
import { buildUrl, navigate, useQueryParam } from "../location.ts";
import { formatAgo, formatCount, formatDateTime } from "../format.ts";

interface AuditRow {
  readonly id: string;
  readonly at: number;
  readonly actor: string;
  readonly role: string;
  readonly channel: string;
  readonly address?: string;
  readonly command: string;
  readonly target?: string;
  readonly before?: unknown;
  readonly after?: unknown;
  readonly outcome: "done" | "failed" | "unknown";
  readonly code?: string;
}
interface AuditPageResponse {
  readonly items: readonly AuditRow[];
  readonly next?: string;
  /** Number of single requests that each actor has opened since the gateway started. */
  readonly accessCounts?: readonly { readonly actor: string; readonly count: number }[];
}

const LIMIT = 100;
const POLL_MS = 10_000;
const TONES: Readonly<Record<AuditRow["outcome"], Tone>> = {
  done: "good",
  failed: "bad",
  unknown: "warn",
};

/** Returns midnight of a day in the browser's time zone, or undefined if the day is invalid. */
function midnightOf(day: string, add = 0): number | undefined {
  const [year, month, date] = day.split("-").map(Number);
  const at = new Date(year!, month! - 1, date! + add).getTime();
  return Number.isFinite(at) ? at : undefined;
}

export function AuditPage() {
  const [from, setFrom] = useQueryParam("from");
  const [to, setTo] = useQueryParam("to");
  // A new range remounts the list.
  return html`<${Entries} key=${`${from} ${to}`} dates=${{ from, to, setFrom, setTo }} />`;
}

interface Dates {
  readonly from: string;
  readonly to: string;
  readonly setFrom: (to: string) => void;
  readonly setTo: (to: string) => void;
}

function Entries({ dates: { from, to, setFrom, setTo } }: { dates: Dates }) {
  const span = {
    ...(from && { from: midnightOf(from) }),
    ...(to && { to: midnightOf(to, 1) }),
  };
  const newest = useQuery<AuditPageResponse>(
    "audit.list",
    { limit: LIMIT, ...span },
    { intervalMs: POLL_MS },
  );
  const [older, add] = useState<readonly AuditRow[]>([]);
  const [next, follow] = useState<string>();
  const [search, setSearch] = useQueryParam("q");
  const [chosen, choose] = useQueryParam("entry");
  // Only the first page sets the cursor for older entries. Later refreshes add newer entries.
  useEffect(() => {
    if (newest.value && next === undefined && older.length === 0) follow(newest.value.next);
  }, [newest.value]);
  const more = () =>
    runCommand<AuditPageResponse>("audit.list", { limit: LIMIT, after: next, ...span }).then(
      (page) => {
        add([...older, ...page.items]);
        follow(page.next ?? "");
      },
      (error: Error) => toast(error.message, "bad"),
    );
  const all = new Map([...(newest.value?.items ?? []), ...older].map((each) => [each.id, each]));
  const word = search.toLowerCase();
  const rows = [...all.values()].filter((each) =>
    `${each.actor} ${each.command} ${each.target ?? ""} ${each.address ?? ""} ${each.outcome}`
      .toLowerCase()
      .includes(word),
  );
  const one = all.get(chosen);
  return html` <div class="filters">
      <${TextField}
        name="Search"
        type="search"
        wide=${true}
        value=${search}
        set=${setSearch}
        placeholder="admin:anna, keys.create, …"
      />
      <${TextField} name="From" type="date" value=${from} set=${setFrom} />
      <${TextField} name="To" type="date" value=${to} set=${setTo} />
      ${(from || to) && html`<button type="button" class="button" onClick=${() => navigate(buildUrl("/audit", { q: search }))}>All dates</button>`}
    </div>
    <${QueryResult} of=${newest}
      >${() =>
        html`<${Box} flush=${true}>
          <${Table}
            label="Audit"
            rows=${rows}
            rowId=${(row: AuditRow) => row.id}
            onOpen=${(row: AuditRow) => choose(row.id)}
            selectedId=${chosen}
            initialRows=${500}
            empty=${from || to || search ? NO_MATCHES : NO_ENTRIES}
            columns=${COLUMNS}
          />
        <//>`}<//
    >
    ${
      newest.value?.accessCounts?.length
        ? html`<p class="small quiet">
            Since the gateway started, single requests were opened by
            ${` ${newest.value.accessCounts.map((each) => `${each.actor} (${formatCount(each.count)})`).join(", ")}`}.
          </p>`
        : null
    }
    ${next && html`<div><button type="button" class="button" onClick=${more}>Load older entries</button></div>`}
    <${CommandLineHint}
      line=${["tollgate audit", ...(from ? [`--since ${from}`] : []), ...(to ? [`--until ${to}`] : [])].join(" ")}
    />
    ${one && html`<${Entry} of=${one} close=${() => choose("")} />`}`;
}

const NO_ENTRIES = html`<${EmptyState} of="audit"
  ><p>No changes yet. Each change is recorded here before it takes effect.</p><//
>`;

const NO_MATCHES = html`<${EmptyState} of="search"><p>No entry matches these filters.</p><//>`;

const COLUMNS = [
  {
    name: "When",
    sortKey: (row: AuditRow) => row.at,
    render: (row: AuditRow) =>
      html`<span class="nowrap">${formatDateTime(row.at)}</span>
        <div class="small faint">${formatAgo(row.at)}</div>`,
  },
  {
    name: "Command",
    isRowHeader: true,
    sortKey: (row: AuditRow) => row.command,
    render: (row: AuditRow) => html`<code>${row.command}</code>`,
  },
  {
    name: "Target",
    sortKey: (row: AuditRow) => row.target ?? "",
    render: (row: AuditRow) => html`<span class="cut" title=${row.target}>${row.target}</span>`,
  },
  {
    name: "By",
    sortKey: (row: AuditRow) => row.actor,
    render: (row: AuditRow) =>
      html`<span class="break">${row.actor}</span>
        <div class="small faint">${row.role}</div>`,
  },
  {
    name: "From",
    render: (row: AuditRow) =>
      html`${row.channel}${row.address && html`<div class="small faint">${row.address}</div>`}`,
  },
  {
    name: "Outcome",
    sortKey: (row: AuditRow) => row.outcome,
    render: (row: AuditRow) =>
      html`<${Badge} tone=${TONES[row.outcome]}>${row.outcome}<//
        >${row.code && html`<div class="small faint">${row.code}</div>`}`,
  },
];

const formatJson = (value: unknown): string => JSON.stringify(value, null, 2);

const Entry = ({ of, close }: { of: AuditRow; close: () => void }) =>
  html`<${Drawer}
    title=${of.command}
    close=${close}
    actions=${html`<${Badge} tone=${TONES[of.outcome]}>${of.outcome}<//>`}
  >
    <${FactList}
      of=${[
        ["When", formatDateTime(of.at)],
        ["By", `${of.actor}, ${of.role}`],
        ["From", [of.channel, of.address].filter(Boolean).join(", ")],
        ["Target", of.target],
        ["Error code", of.code],
      ]}
    />
    <${Box} title="Before"
      >${of.before === undefined ? html`<p class="quiet">The target did not exist, or its earlier state is not recorded.</p>` : html`<${Code} text=${formatJson(of.before)} label="Before" wrap=${true} />`}<//
    >
    <${Box} title="Input"
      >${of.after === undefined ? html`<p class="quiet">The command has no input.</p>` : html`<${Code} text=${formatJson(of.after)} label="Input" wrap=${true} />`}<//
    >
  <//>`;
