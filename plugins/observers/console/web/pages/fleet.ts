// The gateways that share a store: which live, what each runs, whose clock or knowledge is off. One alone is a fleet of one.
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Box, Figures, Mark, NoteBox, SameAs, Shown } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { ago, count, moment, span } from "../words.ts";

interface Node {
  readonly instance: string;
  /** The one that is asked. */
  readonly self: boolean;
  readonly state: "live" | "left" | "dead";
  readonly heard: number;
  readonly open?: number;
  readonly aheadMs?: number;
  readonly lagMs?: number;
  readonly about?: {
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
  /** Gateways. */
  readonly nodes: readonly Node[];
  /** Programs of the command line that have the store open. */
  readonly commands: readonly Node[];
  readonly remarks: readonly string[];
}

const EVERY_MS = 5_000;
const TONES = { live: "good", left: "", dead: "bad" } as const;

export function FleetPage() {
  const answer = useAsk<Fleet>("fleet", {}, { every: EVERY_MS });
  const status = useAsk<StatusOf>("status", {}, { every: EVERY_MS });
  return html`<${Shown} of=${answer}>${page}<//>
    <${Shown} of=${status}>${processes}<//>
    <${SameAs} line="tollgate fleet" />`;
}

/** The processes of the gateway that answers here. */
interface Process {
  readonly pid: number;
  readonly startedAt: number;
  readonly generations: readonly { readonly generation: number; readonly inFlight: number }[];
}
interface StatusOf extends Process {
  readonly workers?: readonly Process[];
}

function processes({ workers = [], ...primary }: StatusOf) {
  const rows = [
    { ...primary, what: workers.length > 0 ? "primary" : "the only process" },
    ...workers.map((each, at) => ({ ...each, what: `worker ${at + 1}` })),
  ];
  return html`<${Box} title="Processes of this gateway" flush>
    <${Table}
      label="Processes of this gateway"
      rows=${rows}
      id=${(row: Process) => `${row.pid}`}
      columns=${workers.length > 0 ? PROCESSES.filter((_, at) => at !== 3) : PROCESSES}
    />
    ${
      workers.length > 0 &&
      html`<p class="small quiet in">
        The primary owns the store and the admin listener. The workers serve clients.
        ${` ${count(inFlightOf(primary))} requests are in flight in all of them.`}
      </p>`
    }
  <//>`;
}

const inFlightOf = ({ generations }: Process): number =>
  generations.reduce((sum, { inFlight }) => sum + inFlight, 0);

type Row = Process & { readonly what: string };
const PROCESSES: readonly Column<Row>[] = [
  { name: "Process", head: true, of: ({ what }) => what },
  { name: "Pid", number: true, of: ({ pid }) => html`<code>${pid}</code>` },
  {
    name: "Started",
    of: ({ startedAt }) =>
      html`<span class="nowrap" title=${moment(startedAt)}>${ago(startedAt)}</span>`,
  },
  { name: "In flight", number: true, of: (row) => count(inFlightOf(row)) },
  { name: "Config generation", number: true, of: ({ generations }) => generations[0]?.generation },
];

function page({ nodes, commands, remarks }: Fleet) {
  const live = nodes.filter(({ state }) => state === "live");
  const open = nodes.reduce((all, { open = 0 }) => all + open, 0);
  const versions = new Set(live.flatMap(({ about }) => about?.version ?? []));
  return html` <${Figures}
      of=${[
        {
          name: "Live gateways",
          value: count(live.length),
          note:
            live.length < nodes.length
              ? `${count(nodes.length - live.length)} stopped or lost`
              : live.length === 1
                ? "no other gateway on this store"
                : "all gateways are live",
        },
        {
          name: "Workers",
          value: count(live.reduce((all, { about }) => all + (about?.workers ?? 1), 0)),
          note: "processes that serve clients",
        },
        {
          name: "Versions",
          value: count(versions.size),
          note: [...versions].join(", "),
          tone: versions.size > 1 ? "warn" : "good",
        },
        { name: "Open calls", value: count(open), note: "not settled in the store yet" },
      ]}
    />
    ${remarks.map((remark) => html`<${NoteBox} key=${remark} tone="warn">${remark}<//>`)}
    <${Box} title="Gateways" flush>
      <${Table}
        label="Gateways"
        rows=${nodes}
        id=${(row: Node) => row.instance}
        columns=${COLUMNS}
      />
    <//>
    ${
      commands.length > 0 &&
      html`<p class="small quiet">
        ${commands.length === 1 ? "A command of the command line has" : `${count(commands.length)} commands of the command line have`}
        the store open:
        ${commands.map(({ about }) => `pid ${about?.pid ?? "?"} on ${about?.host ?? "?"}`).join(", ")}.
      </p>`
    }`;
}

const ahead = (ms: number | undefined): string =>
  ms === undefined ? "–" : `${ms > 0 ? "+" : ""}${ms} ms`;
const late = (ms: number | undefined): string =>
  ms === undefined ? "–" : ms === 0 ? "up to date" : `${span(ms)} behind`;

const COLUMNS: readonly Column<Node>[] = [
  {
    name: "Gateway",
    head: true,
    by: ({ instance }) => instance,
    of: ({ instance, self }) =>
      html`<code title=${instance}>${instance.slice(0, 8)}</code>${self && " (this one)"}`,
  },
  {
    name: "State",
    by: ({ state }) => state,
    of: ({ state }) => html`<${Mark} tone=${TONES[state]}>${state}<//>`,
  },
  {
    name: "Version",
    by: ({ about }) => about?.version ?? "",
    of: ({ about }) => about?.version ?? "–",
  },
  {
    name: "Config",
    by: ({ about }) => about?.config ?? "",
    of: ({ about }) =>
      about?.config === undefined
        ? "–"
        : html`<code>${about.config.slice(0, 8)}</code>, generation ${count(about.generation ?? 0)}`,
  },
  {
    name: "Clock",
    number: true,
    by: ({ aheadMs = 0 }) => aheadMs,
    of: ({ aheadMs }) => ahead(aheadMs),
  },
  {
    name: "Workers",
    number: true,
    by: ({ about }) => about?.workers ?? 1,
    of: ({ about }) => (about?.workers === undefined ? "–" : count(about.workers)),
  },
  { name: "Keys and accounts", by: ({ lagMs = 0 }) => lagMs, of: ({ lagMs }) => late(lagMs) },
  {
    name: "Open calls",
    number: true,
    by: ({ open = 0 }) => open,
    of: ({ open }) => (open === undefined ? "–" : count(open)),
  },
  {
    name: "Last heartbeat",
    by: ({ heard }) => heard,
    of: ({ heard }) => html`<span title=${moment(heard)}>${ago(heard)}</span>`,
  },
  {
    name: "Address",
    by: ({ about }) => about?.url ?? "",
    of: ({ about }) => (about ? `${about.url ?? ""} on ${about.host}` : "–"),
  },
];
