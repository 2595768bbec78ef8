// Audit: what was changed, by whose command, from where, and what it was before. Each stands in the ledger's chain.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { ask } from "../ask.ts";
import { useAsk } from "../data.ts";
import { Text } from "../parts/fields.ts";
import { Drawer } from "../parts/over.ts";
import { Box, Code, Empty, Facts, Mark, SameAs, Shown, type Tone } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf, go, useWord } from "../place.ts";
import { ago, count, moment } from "../words.ts";

interface Audited {
  readonly id: string;
  readonly at: number;
  readonly actor: string;
  readonly role: string;
  readonly door: string;
  readonly address?: string;
  readonly command: string;
  readonly target?: string;
  readonly before?: unknown;
  readonly after?: unknown;
  readonly outcome: "done" | "failed" | "unknown";
  readonly code?: string;
}
interface Page {
  readonly items: readonly Audited[];
  readonly next?: string;
  /** How often single requests were looked at, since the gateway started. */
  readonly looks?: readonly { readonly actor: string; readonly count: number }[];
}

const LIMIT = 100;
const EVERY_MS = 10_000;
const TONES: Readonly<Record<Audited["outcome"], Tone>> = {
  done: "good",
  failed: "bad",
  unknown: "warn",
};

/** Midnight of a day as its reader's zone has it; undefined: it is no day. */
function momentOf(day: string, add = 0): number | undefined {
  const [year, month, date] = day.split("-").map(Number);
  const at = new Date(year!, month! - 1, date! + add).getTime();
  return Number.isFinite(at) ? at : undefined;
}

export function Audit() {
  const [from, setFrom] = useWord("from");
  const [to, setTo] = useWord("to");
  // Another time is another list.
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
    ...(from && { from: momentOf(from) }),
    ...(to && { to: momentOf(to, 1) }),
  };
  const newest = useAsk<Page>("audit.list", { limit: LIMIT, ...span }, { every: EVERY_MS });
  const [older, add] = useState<readonly Audited[]>([]);
  const [next, follow] = useState<string>();
  const [search, setSearch] = useWord("q");
  const [chosen, choose] = useWord("entry");
  // Where older ones begin is said by the first page alone: what comes later is in front of it.
  useEffect(() => {
    if (newest.value && next === undefined && older.length === 0) follow(newest.value.next);
  }, [newest.value]);
  const more = () =>
    ask<Page>("audit.list", { limit: LIMIT, after: next, ...span }).then(
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
      <${Text}
        name="Search"
        type="search"
        wide=${true}
        value=${search}
        set=${setSearch}
        placeholder="admin:anna, keys.create, …"
      />
      <${Text} name="From" type="date" value=${from} set=${setFrom} />
      <${Text} name="To" type="date" value=${to} set=${setTo} />
      ${(from || to) && html`<button type="button" class="button" onClick=${() => go(addressOf("/audit", { q: search }))}>All dates</button>`}
    </div>
    <${Shown} of=${newest}
      >${() =>
        html`<${Box} flush=${true}>
          <${Table}
            label="Audit"
            rows=${rows}
            id=${(row: Audited) => row.id}
            open=${(row: Audited) => choose(row.id)}
            chosen=${chosen}
            most=${500}
            empty=${from || to || search ? NONE_LIKE : NOTHING}
            columns=${COLUMNS}
          />
        <//>`}<//
    >
    ${
      newest.value?.looks?.length
        ? html`<p class="small quiet">
            Requests were opened one by one since the gateway started by
            ${` ${newest.value.looks.map((each) => `${each.actor} (${count(each.count)})`).join(", ")}`}.
          </p>`
        : null
    }
    ${next && html`<div><button type="button" class="button" onClick=${more}>Load older entries</button></div>`}
    <${SameAs}
      line=${["tollgate audit", ...(from ? [`--since ${from}`] : []), ...(to ? [`--until ${to}`] : [])].join(" ")}
    />
    ${one && html`<${Entry} of=${one} close=${() => choose("")} />`}`;
}

const NOTHING = html`<${Empty} of="audit"
  ><p>No changes yet. Each change is recorded here before it takes effect.</p><//
>`;

const NONE_LIKE = html`<${Empty} of="search"><p>No entry matches these filters.</p><//>`;

const COLUMNS = [
  {
    name: "When",
    by: (row: Audited) => row.at,
    of: (row: Audited) =>
      html`<span class="nowrap">${moment(row.at)}</span>
        <div class="small faint">${ago(row.at)}</div>`,
  },
  {
    name: "Command",
    head: true,
    by: (row: Audited) => row.command,
    of: (row: Audited) => html`<code>${row.command}</code>`,
  },
  {
    name: "Target",
    by: (row: Audited) => row.target ?? "",
    of: (row: Audited) => html`<span class="cut" title=${row.target}>${row.target}</span>`,
  },
  {
    name: "By",
    by: (row: Audited) => row.actor,
    of: (row: Audited) =>
      html`<span class="break">${row.actor}</span>
        <div class="small faint">${row.role}</div>`,
  },
  {
    name: "From",
    of: (row: Audited) =>
      html`${row.door}${row.address && html`<div class="small faint">${row.address}</div>`}`,
  },
  {
    name: "Outcome",
    by: (row: Audited) => row.outcome,
    of: (row: Audited) =>
      html`<${Mark} tone=${TONES[row.outcome]}>${row.outcome}<//
        >${row.code && html`<div class="small faint">${row.code}</div>`}`,
  },
];

const said = (value: unknown): string => JSON.stringify(value, null, 2);

const Entry = ({ of, close }: { of: Audited; close: () => void }) =>
  html`<${Drawer}
    title=${of.command}
    close=${close}
    actions=${html`<${Mark} tone=${TONES[of.outcome]}>${of.outcome}<//>`}
  >
    <${Facts}
      of=${[
        ["When", moment(of.at)],
        ["By", `${of.actor}, ${of.role}`],
        ["From", [of.door, of.address].filter(Boolean).join(", ")],
        ["Target", of.target],
        ["Error code", of.code],
      ]}
    />
    <${Box} title="Before"
      >${of.before === undefined ? html`<p class="quiet">The target did not exist, or its earlier state is not recorded.</p>` : html`<${Code} text=${said(of.before)} label="Before" wrap=${true} />`}<//
    >
    <${Box} title="Input"
      >${of.after === undefined ? html`<p class="quiet">The command has no input.</p>` : html`<${Code} text=${said(of.after)} label="Input" wrap=${true} />`}<//
    >
  <//>`;
