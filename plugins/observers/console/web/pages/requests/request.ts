// Details of a request: timeline, routing decisions, translation warnings, and cost with its price
// lines.
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Drawer } from "../../parts/overlay.ts";
import { Box, CopyButton, FactList, Badge, NoteBox, QueryResult } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { buildUrl } from "../../location.ts";
import type { Charge, FoundRequest, ObservedRequest, ObservedCall } from "../../api-types.ts";
import {
  formatCount,
  formatDateTime,
  formatBytes,
  formatDuration,
  formatUsd,
  formatUsdExact,
} from "../../format.ts";
import { hedgeRole, formatHedge, Outcome, hasLost } from "./request-outcome.ts";

interface RequestResponse {
  readonly requests: readonly FoundRequest[];
}

export function RequestDetail({ id, close }: { id: string; close: () => void }) {
  const found = useQuery<RequestResponse>("requests.show", { id });
  return html`<${Drawer}
    title=${html`<span class="mono">${id}</span>`}
    close=${close}
    actions=${html`<${CopyButton} text=${id} name="Copy ID" />`}
  >
    <${QueryResult} of=${found}
      >${(value: RequestResponse) => value.requests.map((each) => html`<${RequestView} key=${each.id + each.record?.at} of=${each} />`)}<//
    >
  <//>`;
}

function RequestView({ of: { id, record, charges } }: { of: FoundRequest }) {
  return html`
    ${record ? html`<${RequestHeader} seen=${record} />` : html`<${Box} title="No longer in the history"><p class="quiet">${id} is no longer in the request history. The ledger has its cost.</p><//>`}
    ${record?.calls && html`<${Hedged} calls=${record.calls} /><${Waterfall} seen=${record} />`}
    ${record && html`<${RoutingTrace} seen=${record} />`}
    ${charges.map((charge) => html`<${Bill} key=${charge.attempt} of=${charge} call=${record?.calls?.find(({ n }) => n === charge.n)} />`)}
    ${record?.calls && html`<${RequestFactsBox} seen=${record} />`}
  `;
}

const RequestHeader = ({ seen }: { seen: ObservedRequest }) =>
  html`<div class="row">
    <${Outcome} of=${seen} />
    <span class="strong break">${seen.model || "no model"}</span>
    ${seen.served && html`<span class="quiet break">served by ${seen.served}</span>`}
    <span class="faint small">${formatDateTime(seen.at)}</span>
  </div>`;

function Hedged({ calls }: { calls: readonly ObservedCall[] }) {
  const words = formatHedge(calls);
  return words === undefined ? null : html`<${NoteBox}><p>${words}</p><//>`;
}

/** The candidates, and the actions of plugin hooks. */
function RoutingTrace({ seen }: { seen: ObservedRequest }) {
  const { skippedCandidates = [], hooks = [], lossCodes = {} } = seen;
  const losses = Object.entries(lossCodes);
  if (skippedCandidates.length + hooks.length + losses.length === 0) return null;
  return html`<${Box} title="In progress">
    <ul class="todo">
      ${hooks.map(
        ({ plugin, hook, effect, ms }) =>
          html`<li key=${plugin + hook}>
            <div>
              <span class="strong">${plugin}</span>
              <span class="quiet">${hook}</span>
              ${effect.replace("_", " ")}${ms === undefined ? "" : `, ${formatDuration(ms)}`}
            </div>
          </li>`,
      )}
      ${skippedCandidates.map(
        ({ candidate, credential, by, code }) =>
          html`<li key=${candidate + credential}>
            <div>
              <span class="strong">${candidate}</span> <span class="quiet">${credential}</span> was
              skipped by ${by}: <code>${code}</code>
            </div>
          </li>`,
      )}
      ${losses.map(
        ([code, n]) =>
          html`<li key=${code}>
            <div>
              The translation dropped or approximated
              <code>${code}</code>${n > 1 ? `, ${n} times` : ""}.
            </div>
          </li>`,
      )}
    </ul>
  <//>`;
}

interface BillLine {
  readonly unit: string;
  readonly count: number;
  readonly nano: string | undefined;
}

const BILL_COLUMNS: readonly Column<BillLine>[] = [
  { name: "Unit", isRowHeader: true, render: ({ unit }) => unit.replaceAll("_", " ") },
  { name: "Count", isNumber: true, render: (line) => formatCount(line.count) },
  {
    name: "Price per million",
    isNumber: true,
    render: (line) =>
      line.nano === undefined || line.count === 0
        ? "–"
        : formatUsd((Number(line.nano) / line.count) * 1e6),
  },
  {
    name: "Cost",
    isNumber: true,
    render: ({ nano }) => (nano === undefined ? "–" : formatUsdExact(nano)),
  },
];

/** The ledger entry of a call. Its price lines are computed again from the pinned price. */
function Bill({ of: charge, call }: { of: Charge; call: ObservedCall | undefined }) {
  const part = call && hedgeRole(call);
  const { n, target, state, costNano, priceLines, usage, adjustments } = charge;
  const rows: readonly BillLine[] =
    priceLines ?? Object.entries(usage).map(([unit, count]) => ({ unit, count, nano: undefined }));
  const sum = priceLines?.reduce((all, { nano }) => all + BigInt(nano), 0n);
  const equal = sum !== undefined && costNano !== null && sum === BigInt(costNano);
  const columns = BILL_COLUMNS.map((column) =>
    column.name === "Cost" ? { ...column, footer: formatUsdExact(costNano) } : column,
  );
  return html`<${Box}
    title=${`Bill of call ${n}${part ? ` (${part})` : ""}`}
    flush=${true}
    actions=${html`<span class="row"><${Badge} tone=${state === "exact" ? "good" : state === "unpriced" ? "bad" : "warn"}>${state}<//>${equal && html`<span class="small quiet">recomputed: same result</span>`}</span>`}
  >
    <${Table}
      label=${`Usage and price of call ${n}`}
      columns=${columns}
      rows=${rows}
      rowId=${({ unit }: BillLine) => unit}
    />
    <div class="in">
      <${FactList}
        of=${[
          ["Sent to", `${target.provider}/${target.model} as ${target.credential}`],
          ["Attempt", html`<code class="break">${charge.attempt}</code>`],
          [
            "Provider's ID",
            charge.upstreamId && html`<code class="break">${charge.upstreamId}</code>`,
          ],
          [
            "Reserved amount",
            charge.holdNano === undefined ? undefined : formatUsd(charge.holdNano),
          ],
          [
            "Price row",
            charge.price && html`<code title=${charge.price}>${charge.price.slice(0, 16)}…</code>`,
          ],
          ["Ledger rows", charge.rowNumbers.join(", ")],
          ["Reserved", formatDateTime(charge.reservedAt)],
          [
            "Settled",
            charge.settledAt === undefined ? "not yet" : formatDateTime(charge.settledAt),
          ],
        ]}
      />
      ${adjustments.map((each) => html`<p class="small" key=${each.row}>Corrected by ${formatUsdExact(each.costNano)}: ${each.reason} <span class="faint">${each.actor}, ${formatDateTime(each.at)}</span></p>`)}
    </div>
  <//>`;
}

const RequestFactsBox = ({ seen }: { seen: ObservedRequest }) =>
  html`<${Box} title="Facts"
    ><${FactList}
      of=${[
        [
          "Key",
          seen.key &&
            html`<a href=${buildUrl("/usage", { by: "model", key: seen.key })}
              >${seen.keyName ?? seen.key}</a
            >`,
        ],
        ["Account", seen.account],
        [
          "Endpoint",
          `${seen.frontend} (${seen.protocol || "no protocol"}), ${seen.method} ${seen.route}`,
        ],
        ["Alias", seen.alias],
        ["Mode", seen.mode],
        ["Finish", seen.finish],
        [
          "Error kind",
          seen.fault && `${seen.fault.kind} ${seen.fault.code ?? ""} ${seen.fault.errno ?? ""}`,
        ],
        [
          "Labels",
          seen.labels &&
            Object.entries(seen.labels).map(
              ([name, value]) =>
                html`<a
                  key=${name}
                  class="mark plain"
                  href=${buildUrl("/usage", { by: "model", label: `${name}=${value}` })}
                  >${name}=${value}</a
                > `,
            ),
        ],
        ["Privacy", seen.privacy === "off" ? undefined : seen.privacy],
        ["Privacy receipt", seen.zdrReceipt && html`<code class="break">${seen.zdrReceipt}</code>`],
        [
          "Size",
          seen.bytesIn === undefined
            ? undefined
            : `${formatBytes(seen.bytesIn)} in, ${formatBytes(seen.bytesOut ?? 0)} out`,
        ],
        [
          "Client's own ID",
          seen.clientRequestId && html`<code class="break">${seen.clientRequestId}</code>`,
        ],
        ["WebSocket", seen.session && html`<code class="break">${seen.session}</code>`],
        ["Trace", seen.trace && html`<code class="break">${seen.trace.traceId}</code>`],
        ["Served by", `config ${seen.generation}, process ${seen.worker}`],
      ]}
  /><//>`;

// Timeline of a request: all attempts on one scale, with response headers, first token, and end.

interface WaterfallSegment {
  readonly kind: "own" | "ask" | "head" | "content" | "bad";
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

interface WaterfallRow {
  readonly name: string;
  readonly ms: number;
  readonly segments: readonly WaterfallSegment[];
}

/**
 * Returns the segments of a call: until the response headers, until the first token, and until the
 * end. A call that failed before its first token has one segment.
 */
function callSegments(call: ObservedCall): WaterfallSegment[] {
  const { startMs, ms, fault } = call;
  const failed = hasLost(call) ? "canceled" : "failed";
  const end = startMs + ms.total;
  const head = startMs + (ms.headers ?? ms.total);
  const content = startMs + (ms.firstToken ?? ms.total);
  if (fault && ms.firstToken === undefined)
    return [
      { kind: "bad", from: startMs, to: end, label: `${failed} after ${formatDuration(ms.total)}` },
    ];
  return [
    { kind: "ask", from: startMs, to: head, label: `headers after ${formatDuration(ms.headers)}` },
    {
      kind: "head",
      from: head,
      to: Math.max(head, content),
      label: `first token after ${formatDuration(ms.firstToken)}`,
    },
    {
      kind: fault ? "bad" : "content",
      from: Math.max(head, content),
      to: end,
      label: `${fault ? "broke off" : "ended"} after ${formatDuration(ms.total)}`,
    },
  ];
}

function waterfallRows(seen: ObservedRequest): WaterfallRow[] {
  const { calls = [], ms = 0, overheadMs = 0 } = seen;
  const first = calls[0]?.startMs ?? ms;
  return [
    {
      name: "before a call",
      ms: first,
      segments: [
        {
          kind: "own",
          from: 0,
          to: first,
          label: `read, admitted, routed, and reserved in ${formatDuration(first)}`,
        },
      ],
    },
    ...calls.map((call) => ({
      name: `${call.n} ${call.provider}/${call.model}${hedgeRole(call) ? ` (${hedgeRole(call)})` : ""}`,
      ms: call.ms.total,
      segments: callSegments(call),
    })),
    {
      name: "gateway time",
      ms: overheadMs,
      segments: [
        {
          kind: "own",
          from: 0,
          to: overheadMs,
          label: `${formatDuration(overheadMs)} in total over the request`,
        },
      ],
    },
  ];
}

function Waterfall({ seen }: { seen: ObservedRequest }) {
  const steps = waterfallRows(seen);
  const all = Math.max(
    seen.ms ?? 0,
    ...(seen.calls ?? []).map(({ startMs, ms }) => startMs + ms.total),
    0.001,
  );
  const at = (ms: number) => `${Math.min(100, (ms / all) * 100)}%`;
  return html`<${Box} title=${`Timeline, ${formatDuration(seen.ms)}`}>
    <ol class="fall">
      ${steps.map(
        ({ name, ms, segments }) =>
          html`<li class="step" key=${name}>
            <span class="name" title=${name}>${name}</span>
            <span class="lane" aria-hidden="true"
              >${segments.filter(({ from, to }) => to > from || to > 0).map(({ kind, from, to, label }) => html`<i key=${kind} class=${kind} title=${label} style=${{ left: at(from), width: at(Math.max(0, to - from)) }}></i>`)}</span
            >
            <span class="ms">${formatDuration(ms)}</span>
            <span class="unseen">${segments.map(({ label }) => label).join(", ")}</span>
          </li>`,
      )}
    </ol>
    <ul class="row small quiet legend">
      <li class="row"><i class="dot s4"></i>gateway</li>
      <li class="row"><i class="dot s7"></i>to headers</li>
      <li class="row"><i class="dot s1"></i>to first token</li>
      <li class="row"><i class="dot s2"></i>to the end</li>
      <li class="row"><i class="dot bad"></i>failed</li>
    </ul>
  <//>`;
}
