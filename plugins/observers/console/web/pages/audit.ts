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
import { useWord } from "../place.ts";
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

export function Audit() {
  const newest = useAsk<Page>("audit.list", { limit: LIMIT }, { every: EVERY_MS });
  const [older, add] = useState<readonly Audited[]>([]);
  const [next, follow] = useState<string>();
  const [search, setSearch] = useWord("q");
  const [chosen, choose] = useWord("entry");
  // Where older ones begin is said by the first page alone: what comes later is in front of it.
  useEffect(() => {
    if (newest.value && next === undefined && older.length === 0) follow(newest.value.next);
  }, [newest.value]);
  const more = () =>
    ask<Page>("audit.list", { limit: LIMIT, after: next }).then(
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
            empty=${NOTHING}
            columns=${COLUMNS}
          />
        <//>`}<//
    >
    ${
      newest.value?.looks?.length
        ? html`<p class="small quiet">
            Single requests were looked at since the gateway started by
            ${` ${newest.value.looks.map((each) => `${each.actor} (${count(each.count)})`).join(", ")}`}.
          </p>`
        : null
    }
    ${next && html`<div><button type="button" class="button" onClick=${more}>Older ones</button></div>`}
    <${SameAs} line="tollgate audit" />
    ${one && html`<${Entry} of=${one} close=${() => choose("")} />`}`;
}

const NOTHING = html`<${Empty} of="audit"
  ><p>
    No command has changed anything yet. Each that does is written here before it takes effect.
  </p><//
>`;

const COLUMNS = [
  {
    name: "When",
    by: (row: Audited) => row.at,
    of: (row: Audited) => html`<span class="nowrap" title=${moment(row.at)}>${ago(row.at)}</span>`,
  },
  {
    name: "Command",
    head: true,
    by: (row: Audited) => row.command,
    of: (row: Audited) => html`<code>${row.command}</code>`,
  },
  {
    name: "About",
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
        ["About", of.target],
        ["Why it failed", of.code],
      ]}
    />
    <${Box} title="Before"
      >${of.before === undefined ? html`<p class="quiet">Nothing that could be read.</p>` : html`<${Code} text=${said(of.before)} label="Before" wrap=${true} />`}<//
    >
    <${Box} title="Asked for"
      >${of.after === undefined ? html`<p class="quiet">Nothing beyond the command.</p>` : html`<${Code} text=${said(of.after)} label="Asked for" wrap=${true} />`}<//
    >
  <//>`;
