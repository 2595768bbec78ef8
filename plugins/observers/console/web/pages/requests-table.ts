// Requests as rows.
import { useRef } from "preact/hooks";
import { html } from "htm/preact";
import { Empty } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { addressOf } from "../place.ts";
import type { Seen } from "../shapes.ts";
import { clock, day, moment, span, usd, usdExact } from "../words.ts";
import { costOf, Outcome } from "./request-words.ts";

const isToday = (at: number): boolean => day(at) === day(Date.now());

const COLUMNS: readonly Column<Seen>[] = [
  {
    name: "Ended",
    by: ({ at }) => at,
    of: ({ at, phase }) =>
      phase
        ? html`<span class="nowrap faint">since ${clock(at)}</span>`
        : html`<span class="nowrap" title=${moment(at)}
            >${isToday(at) ? "" : html`<span class="faint">${day(at)}</span> `}${clock(at)}</span
          >`,
  },
  { name: "Outcome", by: ({ status }) => status, of: (seen) => html`<${Outcome} of=${seen} />` },
  {
    name: "Model",
    head: true,
    by: ({ model = "" }) => model,
    of: ({ id, model, served, route, method }) =>
      html`<a
          class="cut"
          href=${addressOf(`/requests/${id}`, Object.fromEntries(new URLSearchParams(location.search)))}
          title=${model}
          >${model || `${method ?? ""} ${route ?? "rejected early"}`}</a
        >${served && served !== model ? html`<span class="small faint cut">${served}</span>` : null}`,
  },
  {
    name: "Key",
    by: ({ keyName, key }) => keyName ?? key ?? "",
    of: ({ keyName, key }) =>
      html`<span class="cut">${keyName ?? key ?? html`<span class="faint">none</span>`}</span>`,
  },
  {
    name: "Account",
    by: ({ account = "" }) => account,
    of: ({ account }) =>
      html`<span class="cut" title=${account}
        >${account ?? html`<span class="faint">–</span>`}</span
      >`,
  },
  {
    name: "Frontend",
    by: ({ frontend = "" }) => frontend,
    of: ({ frontend, stream }) =>
      html`<span class="nowrap"
        >${frontend ?? "–"}${stream ? html` <span class="faint">stream</span>` : ""}</span
      >`,
  },
  {
    name: "Calls",
    number: true,
    by: ({ calls = [] }) => calls.length,
    of: ({ calls = [], cached }) => (cached ? "cached" : calls.length),
  },
  {
    name: "First token",
    number: true,
    by: ({ contentMs }) => contentMs ?? -1,
    of: ({ contentMs }) => span(contentMs),
  },
  { name: "Duration", number: true, by: ({ ms }) => ms ?? -1, of: ({ ms }) => span(ms) },
  {
    name: "Cost",
    number: true,
    by: (seen) => Number(costOf(seen) ?? -1n),
    of: (seen) =>
      html`<span title=${usdExact(costOf(seen))}
        >${seen.calls?.length ? usd(costOf(seen)) : "–"}</span
      >`,
  },
];

export function Listed({
  items,
  open,
  chosen,
  nothing,
}: {
  items: readonly Seen[];
  open: (id: string) => void;
  chosen: string;
  /** Shown in place of no rows. */
  nothing: string;
}) {
  const began = useRef(Date.now());
  return html`<${Table}
    label="Requests, the newest first"
    columns=${COLUMNS}
    rows=${items}
    id=${({ id }: Seen) => id}
    open=${({ id }: Seen) => open(id)}
    chosen=${chosen}
    isNew=${({ at, phase }: Seen) => !phase && at > began.current}
    most=${100}
    empty=${html`<${Empty} of="requests"
      ><p>${nothing}</p>
      <a class="button" href=${addressOf("/playground")}>Ask a model</a><//
    >`}
  />`;
}
