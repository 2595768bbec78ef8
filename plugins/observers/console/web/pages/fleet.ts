// Fleet page: the gateways that share a store, their state and version, and gateways whose clock or
// data is out of date. A single gateway is a fleet of one.
import { html } from "htm/preact";
import { useQuery } from "../use-query.ts";
import { Box, Figures, Badge, NoteBox, CommandLineHint, QueryResult } from "../parts/basics.ts";
import { Table, type Column } from "../parts/table.ts";
import { formatAgo, formatCount, formatDateTime, formatDuration } from "../format.ts";

interface FleetNode {
  readonly instance: string;
  /** Whether this is the gateway that responded. */
  readonly isSelf: boolean;
  readonly state: "live" | "left" | "dead";
  readonly lastHeartbeatAt: number;
  readonly openCalls?: number;
  readonly clockAheadMs?: number;
  readonly syncLagMs?: number;
  readonly info?: {
    readonly version: string;
    readonly host: string;
    readonly url?: string;
    readonly pid: number;
    readonly generation?: number;
    readonly config?: string;
    readonly workers?: number;
  };
}
interface Fleet {
  /** Gateways of the fleet. */
  readonly nodes: readonly FleetNode[];
  /** Command-line programs that have the store open. */
  readonly commandPrograms: readonly FleetNode[];
  readonly warnings: readonly string[];
}

const POLL_MS = 5_000;
const TONES = { live: "good", left: "", dead: "bad" } as const;

export function FleetPage() {
  const answer = useQuery<Fleet>("fleet", {}, { intervalMs: POLL_MS });
  const status = useQuery<StatusResponse>("status", {}, { intervalMs: POLL_MS });
  return html`<${QueryResult} of=${answer}>${renderFleet}<//>
    <${QueryResult} of=${status}>${renderProcesses}<//>
    <${CommandLineHint} line="tollgate fleet" />`;
}

/** A process of the gateway that responded. */
interface Process {
  readonly pid: number;
  readonly startedAt: number;
  readonly generations: readonly { readonly generation: number; readonly inFlight: number }[];
}
interface StatusResponse extends Process {
  readonly workers?: readonly Process[];
}

function renderProcesses({ workers = [], ...primary }: StatusResponse) {
  const rows = [
    { ...primary, what: workers.length > 0 ? "primary" : "the only process" },
    ...workers.map((each, at) => ({ ...each, what: `worker ${at + 1}` })),
  ];
  return html`<${Box} title="Processes of this gateway" flush>
    <${Table}
      label="Processes of this gateway"
      rows=${rows}
      rowId=${(row: Process) => `${row.pid}`}
      columns=${workers.length > 0 ? PROCESSES.filter((_, at) => at !== 3) : PROCESSES}
    />
    ${
      workers.length > 0 &&
      html`<p class="small quiet in">
        The primary owns the store and the admin listener. The workers serve clients.
        ${` ${formatCount(totalInFlight(primary))} requests are in flight in total.`}
      </p>`
    }
  <//>`;
}

const totalInFlight = ({ generations }: Process): number =>
  generations.reduce((sum, { inFlight }) => sum + inFlight, 0);

type Row = Process & { readonly what: string };
const PROCESSES: readonly Column<Row>[] = [
  { name: "Process", isRowHeader: true, render: ({ what }) => what },
  { name: "PID", isNumber: true, render: ({ pid }) => html`<code>${pid}</code>` },
  {
    name: "Started",
    render: ({ startedAt }) =>
      html`<span class="nowrap" title=${formatDateTime(startedAt)}>${formatAgo(startedAt)}</span>`,
  },
  { name: "In flight", isNumber: true, render: (row) => formatCount(totalInFlight(row)) },
  {
    name: "Config generation",
    isNumber: true,
    render: ({ generations }) => generations[0]?.generation,
  },
];

function renderFleet({ nodes, commandPrograms, warnings }: Fleet) {
  const live = nodes.filter(({ state }) => state === "live");
  const open = nodes.reduce((all, { openCalls = 0 }) => all + openCalls, 0);
  const versions = new Set(live.flatMap(({ info }) => info?.version ?? []));
  return html` <${Figures}
      of=${[
        {
          name: "Live gateways",
          value: formatCount(live.length),
          note:
            live.length < nodes.length
              ? `${formatCount(nodes.length - live.length)} stopped or lost`
              : live.length === 1
                ? "the only gateway on this store"
                : "all gateways are live",
        },
        {
          name: "Workers",
          value: formatCount(live.reduce((all, { info }) => all + (info?.workers ?? 1), 0)),
          note: "processes that serve clients",
        },
        {
          name: "Versions",
          value: formatCount(versions.size),
          note: [...versions].join(", "),
          tone: versions.size > 1 ? "warn" : "good",
        },
        { name: "Open calls", value: formatCount(open), note: "not settled in the store yet" },
      ]}
    />
    ${warnings.map((remark) => html`<${NoteBox} key=${remark} tone="warn">${remark}<//>`)}
    <${Box} title="Gateways" flush>
      <${Table}
        label="Gateways"
        rows=${nodes}
        rowId=${(row: FleetNode) => row.instance}
        columns=${COLUMNS}
      />
    <//>
    ${
      commandPrograms.length > 0 &&
      html`<p class="small quiet">
        ${commandPrograms.length === 1 ? "One CLI command has" : `${formatCount(commandPrograms.length)} CLI commands have`}
        the store open:
        ${commandPrograms.map(({ info }) => `pid ${info?.pid ?? "?"} on ${info?.host ?? "?"}`).join(", ")}.
      </p>`
    }`;
}

const formatClockOffset = (ms: number | undefined): string =>
  ms === undefined ? "–" : `${ms > 0 ? "+" : ""}${ms} ms`;
const formatSyncLag = (ms: number | undefined): string =>
  ms === undefined ? "–" : ms === 0 ? "up to date" : `${formatDuration(ms)} behind`;

const COLUMNS: readonly Column<FleetNode>[] = [
  {
    name: "Gateway",
    isRowHeader: true,
    sortKey: ({ instance }) => instance,
    render: ({ instance, isSelf }) =>
      html`<code title=${instance}>${instance.slice(0, 8)}</code>${isSelf && " (this one)"}`,
  },
  {
    name: "State",
    sortKey: ({ state }) => state,
    render: ({ state }) => html`<${Badge} tone=${TONES[state]}>${state}<//>`,
  },
  {
    name: "Version",
    sortKey: ({ info }) => info?.version ?? "",
    render: ({ info }) => info?.version ?? "–",
  },
  {
    name: "Config",
    sortKey: ({ info }) => info?.config ?? "",
    render: ({ info }) =>
      info?.config === undefined
        ? "–"
        : html`<code>${info.config.slice(0, 8)}</code>, generation${" "}
            ${formatCount(info.generation ?? 0)}`,
  },
  {
    name: "Clock",
    isNumber: true,
    sortKey: ({ clockAheadMs = 0 }) => clockAheadMs,
    render: ({ clockAheadMs }) => formatClockOffset(clockAheadMs),
  },
  {
    name: "Workers",
    isNumber: true,
    sortKey: ({ info }) => info?.workers ?? 1,
    render: ({ info }) => (info?.workers === undefined ? "–" : formatCount(info.workers)),
  },
  {
    name: "Keys and accounts",
    sortKey: ({ syncLagMs = 0 }) => syncLagMs,
    render: ({ syncLagMs }) => formatSyncLag(syncLagMs),
  },
  {
    name: "Open calls",
    isNumber: true,
    sortKey: ({ openCalls = 0 }) => openCalls,
    render: ({ openCalls }) => (openCalls === undefined ? "–" : formatCount(openCalls)),
  },
  {
    name: "Last heartbeat",
    sortKey: ({ lastHeartbeatAt }) => lastHeartbeatAt,
    render: ({ lastHeartbeatAt }) =>
      html`<span title=${formatDateTime(lastHeartbeatAt)}>${formatAgo(lastHeartbeatAt)}</span>`,
  },
  {
    name: "Address",
    sortKey: ({ info }) => info?.url ?? "",
    render: ({ info }) => (info ? `${info.url ?? ""} on ${info.host}` : "–"),
  },
];
