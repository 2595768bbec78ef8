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
import { Waterfall } from "./request-waterfall.ts";
import { hedgeRole, formatHedge, Outcome } from "./request-outcome.ts";

interface RequestResponse {
  readonly requests: readonly FoundRequest[];
}

export function RequestDetail({ id, close }: { id: string; close: () => void }) {
  const found = useQuery<RequestResponse>("requests.show", { id });
  return html`<${Drawer}
    title=${html`<span class="mono">${id}</span>`}
    close=${close}
    actions=${html`<${CopyButton} text=${id} name="Copy id" />`}
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

/**
 * The ledger entry of a call. Its price lines are recomputed from the price that the entry pinned.
 */
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
        ["Trace", seen.trace && html`<code class="break">${seen.trace.traceId}</code>`],
        ["Served by", `config ${seen.generation}, process ${seen.worker}`],
      ]}
  /><//>`;
