// Table of requests.
import { useRef } from "preact/hooks";
import { html } from "htm/preact";
import { EmptyState } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { buildUrl } from "../../location.ts";
import type { ObservedRequest } from "../../api-types.ts";
import {
  formatClock,
  formatDay,
  formatDateTime,
  formatDuration,
  formatUsd,
  formatUsdExact,
} from "../../format.ts";
import { requestCost, Outcome } from "./request-outcome.ts";

const isToday = (at: number): boolean => formatDay(at) === formatDay(Date.now());

const COLUMNS: readonly Column<ObservedRequest>[] = [
  {
    name: "Ended",
    sortKey: ({ at }) => at,
    render: ({ at, phase }) =>
      phase
        ? html`<span class="nowrap faint">since ${formatClock(at)}</span>`
        : html`<span class="nowrap" title=${formatDateTime(at)}
            >${isToday(at) ? "" : html`<span class="faint">${formatDay(at)}</span> `}${formatClock(at)}</span
          >`,
  },
  {
    name: "Outcome",
    sortKey: ({ status }) => status,
    render: (seen) => html`<${Outcome} of=${seen} />`,
  },
  {
    name: "Model",
    isRowHeader: true,
    sortKey: ({ model = "" }) => model,
    render: ({ id, model, served, route, method }) =>
      html`<a
          class="cut"
          href=${buildUrl(`/requests/${id}`, Object.fromEntries(new URLSearchParams(location.search)))}
          title=${model}
          >${model || `${method ?? ""} ${route ?? "rejected early"}`}</a
        >${served && served !== model ? html`<span class="small faint cut">${served}</span>` : null}`,
  },
  {
    name: "Key",
    sortKey: ({ keyName, key }) => keyName ?? key ?? "",
    render: ({ keyName, key }) =>
      html`<span class="cut">${keyName ?? key ?? html`<span class="faint">none</span>`}</span>`,
  },
  {
    name: "Account",
    sortKey: ({ account = "" }) => account,
    render: ({ account }) =>
      html`<span class="cut" title=${account}
        >${account ?? html`<span class="faint">–</span>`}</span
      >`,
  },
  {
    name: "Frontend",
    sortKey: ({ frontend = "" }) => frontend,
    render: ({ frontend, stream }) =>
      html`<span class="nowrap"
        >${frontend ?? "–"}${stream ? html` <span class="faint">stream</span>` : ""}</span
      >`,
  },
  {
    name: "Calls",
    isNumber: true,
    sortKey: ({ calls = [] }) => calls.length,
    render: ({ calls = [], cached }) => (cached ? "cached" : calls.length),
  },
  {
    name: "First token",
    isNumber: true,
    sortKey: ({ firstTokenMs }) => firstTokenMs ?? -1,
    render: ({ firstTokenMs }) => formatDuration(firstTokenMs),
  },
  {
    name: "Duration",
    isNumber: true,
    sortKey: ({ ms }) => ms ?? -1,
    render: ({ ms }) => formatDuration(ms),
  },
  {
    name: "Cost",
    isNumber: true,
    sortKey: (seen) => Number(requestCost(seen) ?? -1n),
    render: (seen) =>
      html`<span title=${formatUsdExact(requestCost(seen))}
        >${seen.calls?.length ? formatUsd(requestCost(seen)) : "–"}</span
      >`,
  },
];

export function RequestTable({
  items,
  open,
  chosen,
  nothing,
}: {
  items: readonly ObservedRequest[];
  open: (id: string) => void;
  chosen: string;
  /** Shown if there are no rows. */
  nothing: string;
}) {
  const began = useRef(Date.now());
  return html`<${Table}
    label="Requests, newest first"
    columns=${COLUMNS}
    rows=${items}
    rowId=${({ id }: ObservedRequest) => id}
    onOpen=${({ id }: ObservedRequest) => open(id)}
    selectedId=${chosen}
    isNew=${({ at, phase }: ObservedRequest) => !phase && at > began.current}
    initialRows=${100}
    empty=${html`<${EmptyState} of="requests"
      ><p>${nothing}</p>
      <a class="button" href=${buildUrl("/playground")}>Ask a model</a><//
    >`}
  />`;
}
