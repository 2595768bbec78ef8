// WebSockets page: the open connections of all processes, with a button that closes one.
import { html } from "htm/preact";
import { useCommand, useQuery } from "../use-query.ts";
import {
  Badge,
  Box,
  CommandLineHint,
  EmptyState,
  ErrorNote,
  Figures,
  QueryResult,
} from "../parts/basics.ts";
import { ConfirmButton, toast } from "../parts/overlay.ts";
import { Table, type Column } from "../parts/table.ts";
import { isAllowed } from "../session.ts";
import { formatBytes, formatCount, formatDateTime, formatDuration } from "../format.ts";

interface LiveSocket {
  readonly id: string;
  readonly type: "requests" | "relay" | "call";
  readonly frontend: string;
  readonly model?: string;
  readonly provider?: string;
  readonly privacy: string;
  readonly key: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly openedAt: number;
  readonly ageMs: number;
  readonly running: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly bufferedBytes: number;
  readonly pauseReasons: readonly string[];
  readonly isClosing: boolean;
}
interface SocketsResponse {
  readonly items: readonly LiveSocket[];
  readonly total: number;
}

const POLL_MS = 2_000;
const LIMIT = 200;

export function SocketsPage() {
  const open = useQuery<SocketsResponse>("sockets.list", { limit: LIMIT }, { intervalMs: POLL_MS });
  return html`<${QueryResult} of=${open}
      >${(of: SocketsResponse) => html`<${Sums} of=${of} /><${Sockets} of=${of} again=${open.refetch} />`}<//
    >
    <${CommandLineHint} line="tollgate sockets" />`;
}

function Sums({ of: { items, total } }: { of: SocketsResponse }) {
  const sum = (count: (one: LiveSocket) => number): number =>
    items.reduce((all, one) => all + count(one), 0);
  const slow = items.filter(isSlow).length;
  return html`<${Figures}
    of=${[
      { name: "Open connections", value: formatCount(total) },
      { name: "Running responses", value: formatCount(sum(({ running }) => running)) },
      {
        name: "Slow clients",
        value: formatCount(slow),
        note: slow > 0 ? `${formatBytes(sum(({ bufferedBytes }) => bufferedBytes))} buffered` : "",
        tone: slow > 0 ? "warn" : "",
      },
    ]}
  />`;
}

function Sockets({ of, again }: { of: SocketsResponse; again: () => void }) {
  const close = useCommand<unknown>("sockets.close");
  const run = async (one: LiveSocket) => {
    if (!(await close.run({ id: one.id }))) return;
    toast(`The connection of ${nameOf(one)} was closed.`);
    again();
  };
  const actions: Column<LiveSocket> = {
    name: "",
    render: (one) =>
      !one.isClosing &&
      html`<${ConfirmButton}
        name="Close"
        what=${`Close the connection of ${nameOf(one)}`}
        run=${() => void run(one)}
      />`,
  };
  const { items, total } = of;
  return html`<${Box} title="Open connections" flush=${true}>
    ${close.error && html`<${ErrorNote} problem=${close.error} />`}
    <${Table}
      label="Open connections, oldest first"
      rows=${items}
      rowId=${({ id }: LiveSocket) => id}
      columns=${isAllowed("sockets.close") ? [...COLUMNS, actions] : COLUMNS}
      empty=${html`<${EmptyState} of="sockets"
        ><p>
          No WebSocket is open. Clients connect at /v1/responses, or at /v1/realtime with the
          realtime frontend.
        </p><//
      >`}
    />
    ${total > items.length && html`<p class="small quiet in">${formatCount(total - items.length)} more connections are not shown.</p>`}
  <//>`;
}

const nameOf = ({ keyName, key }: LiveSocket): string => keyName ?? key;
const isSlow = ({ pauseReasons, bufferedBytes }: LiveSocket): boolean =>
  bufferedBytes > 0 || pauseReasons.includes("slow");

const PAUSES: Readonly<Record<string, string>> = {
  slow: "client reads slowly",
  provider: "provider reads slowly",
  queue: "requests wait",
  relay: "reserving",
  opening: "connecting",
};

function renderState(one: LiveSocket) {
  if (one.isClosing) return html`<${Badge}>closing<//>`;
  const reasons = one.pauseReasons.map((reason) => PAUSES[reason] ?? reason);
  if (reasons.length > 0)
    return html`<${Badge} tone=${isSlow(one) ? "warn" : "accent"}>${reasons.join(", ")}<//>`;
  return one.running > 0
    ? html`<${Badge} tone="good">${formatCount(one.running)} running<//>`
    : html`<${Badge}>idle<//>`;
}

const COLUMNS: readonly Column<LiveSocket>[] = [
  {
    name: "Key",
    isRowHeader: true,
    sortKey: nameOf,
    render: (one) =>
      html`<span class="cut" title=${one.id}>${nameOf(one)}</span
        >${one.account ? html`<span class="small faint cut">${one.account}</span>` : null}`,
  },
  {
    name: "Frontend",
    sortKey: ({ frontend }) => frontend,
    render: ({ frontend, type }) =>
      html`<span class="nowrap"
        >${frontend}${type === "call" ? html` <span class="faint">call</span>` : ""}</span
      >`,
  },
  {
    name: "Model",
    sortKey: ({ model = "" }) => model,
    render: ({ model, type }) =>
      html`<span class="cut" title=${model}
        >${model ?? html`<span class="faint">${type === "requests" ? "per request" : "–"}</span>`}</span
      >`,
  },
  { name: "State", sortKey: ({ running }) => running, render: renderState },
  {
    name: "Age",
    isNumber: true,
    sortKey: ({ ageMs }) => ageMs,
    render: ({ ageMs, openedAt }) =>
      html`<span title=${formatDateTime(openedAt)}>${formatDuration(ageMs)}</span>`,
  },
  {
    name: "Received",
    isNumber: true,
    sortKey: ({ bytesIn }) => bytesIn,
    render: ({ bytesIn }) => formatBytes(bytesIn),
  },
  {
    name: "Sent",
    isNumber: true,
    sortKey: ({ bytesOut }) => bytesOut,
    render: ({ bytesOut }) => formatBytes(bytesOut),
  },
  {
    name: "Buffered",
    isNumber: true,
    sortKey: ({ bufferedBytes }) => bufferedBytes,
    render: ({ bufferedBytes }) => formatBytes(bufferedBytes),
  },
];
