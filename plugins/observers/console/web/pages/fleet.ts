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
    readonly generation?: number;
    readonly config?: string;
  };
}
interface Fleet {
  readonly nodes: readonly Node[];
  readonly remarks: readonly string[];
}

const EVERY_MS = 5_000;
const TONES = { live: "good", left: "", dead: "bad" } as const;

export function FleetPage() {
  const answer = useAsk<Fleet>("fleet", {}, { every: EVERY_MS });
  return html`<${Shown} of=${answer}>${page}<//>`;
}

function page({ nodes, remarks }: Fleet) {
  const live = nodes.filter(({ state }) => state === "live");
  const open = nodes.reduce((all, { open = 0 }) => all + open, 0);
  const versions = new Set(live.flatMap(({ about }) => about?.version ?? []));
  return html` <${Figures}
      of=${[
        {
          name: "Live",
          value: count(live.length),
          note: live.length < nodes.length ? `${count(nodes.length - live.length)} are gone` : "",
        },
        {
          name: "Versions",
          value: count(versions.size),
          note: [...versions].join(", "),
          tone: versions.size > 1 ? "warn" : "good",
        },
        { name: "Open calls", value: count(open), note: "as the store has them" },
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
    <${SameAs} line="tollgate fleet" />`;
}

const ahead = (ms: number | undefined): string =>
  ms === undefined ? "–" : `${ms > 0 ? "+" : ""}${ms} ms`;
const late = (ms: number | undefined): string =>
  ms === undefined ? "–" : ms === 0 ? "all of them" : `${span(ms)} late`;

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
  { name: "Knows keys", by: ({ lagMs = 0 }) => lagMs, of: ({ lagMs }) => late(lagMs) },
  {
    name: "Open calls",
    number: true,
    by: ({ open = 0 }) => open,
    of: ({ open }) => (open === undefined ? "–" : count(open)),
  },
  {
    name: "Heard",
    by: ({ heard }) => heard,
    of: ({ heard }) => html`<span title=${moment(heard)}>${ago(heard)}</span>`,
  },
  {
    name: "Where",
    by: ({ about }) => about?.url ?? "",
    of: ({ about }) => (about ? `${about.url ?? ""} on ${about.host}` : "–"),
  },
];
