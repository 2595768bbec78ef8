// One request's whole story: where its time went, where it was sent and why, what was lost on the way, what it cost and by which lines.
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Drawer } from "../parts/over.ts";
import { Box, CopyButton, Facts, Mark, NoteBox, Shown } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { addressOf } from "../place.ts";
import type { Charge, FoundRequest, Seen, SeenCall } from "../shapes.ts";
import { count, moment, size, span, usd, usdExact } from "../words.ts";
import { Waterfall } from "./request-waterfall.ts";
import { hedgePart, hedgeWords, Outcome } from "./request-words.ts";

interface Found {
  readonly requests: readonly FoundRequest[];
}

export function Story({ id, close }: { id: string; close: () => void }) {
  const found = useAsk<Found>("requests.show", { id });
  return html`<${Drawer}
    title=${html`<span class="mono">${id}</span>`}
    close=${close}
    actions=${html`<${CopyButton} text=${id} name="Copy id" />`}
  >
    <${Shown} of=${found}
      >${(value: Found) => value.requests.map((each) => html`<${One} key=${each.id + each.seen?.at} of=${each} />`)}<//
    >
  <//>`;
}

function One({ of: { id, seen, charges } }: { of: FoundRequest }) {
  return html`
    ${seen ? html`<${Head} seen=${seen} />` : html`<${Box} title="Forgotten"><p class="quiet">What was remembered of ${id} is gone by now. The ledger has what it cost.</p><//>`}
    ${seen?.calls && html`<${Hedged} calls=${seen.calls} /><${Waterfall} seen=${seen} />`}
    ${seen && html`<${Way} seen=${seen} />`}
    ${charges.map((charge) => html`<${Bill} key=${charge.attempt} of=${charge} call=${seen?.calls?.find(({ n }) => n === charge.n)} />`)}
    ${seen?.calls && html`<${More} seen=${seen} />`}
  `;
}

const Head = ({ seen }: { seen: Seen }) =>
  html`<div class="row">
    <${Outcome} of=${seen} />
    <span class="strong break">${seen.model || "no model"}</span>
    ${seen.served && html`<span class="quiet break">answered by ${seen.served}</span>`}
    <span class="faint small">${moment(seen.at)}</span>
  </div>`;

function Hedged({ calls }: { calls: readonly SeenCall[] }) {
  const words = hedgeWords(calls);
  return words === undefined ? null : html`<${NoteBox}><p>${words}</p><//>`;
}

/** Which candidates there were, and what the hooks of plugins did. */
function Way({ seen }: { seen: Seen }) {
  const { passedOver = [], hooks = [], lossCodes = {} } = seen;
  const losses = Object.entries(lossCodes);
  if (passedOver.length + hooks.length + losses.length === 0) return null;
  return html`<${Box} title="On its way">
    <ul class="todo">
      ${hooks.map(
        ({ plugin, hook, did, ms }) =>
          html`<li key=${plugin + hook}>
            <div>
              <span class="strong">${plugin}</span>
              <span class="quiet">${hook}</span>
              ${did.replace("_", " ")}${ms === undefined ? "" : `, ${span(ms)}`}
            </div>
          </li>`,
      )}
      ${passedOver.map(
        ({ candidate, credential, by, code }) =>
          html`<li key=${candidate + credential}>
            <div>
              <span class="strong">${candidate}</span> <span class="quiet">${credential}</span> was
              passed over by ${by}: <code>${code}</code>
            </div>
          </li>`,
      )}
      ${losses.map(
        ([code, n]) =>
          html`<li key=${code}>
            <div>
              The translation could not carry <code>${code}</code>${n > 1 ? `, ${n} times` : ""}.
            </div>
          </li>`,
      )}
    </ul>
  <//>`;
}

interface Line {
  readonly unit: string;
  readonly count: number;
  readonly nano: string | undefined;
}

const LINES: readonly Column<Line>[] = [
  { name: "Unit", head: true, of: ({ unit }) => unit.replaceAll("_", " ") },
  { name: "Count", number: true, of: (line) => count(line.count) },
  {
    name: "Each million",
    number: true,
    of: (line) =>
      line.nano === undefined || line.count === 0
        ? "–"
        : usd((Number(line.nano) / line.count) * 1e6),
  },
  { name: "Cost", number: true, of: ({ nano }) => (nano === undefined ? "–" : usdExact(nano)) },
];

/** What the ledger has of one call. Its lines are computed again here, from the price row that was pinned. */
function Bill({ of: charge, call }: { of: Charge; call: SeenCall | undefined }) {
  const part = call && hedgePart(call);
  const { n, target, state, costNano, lines, usage, adjustments } = charge;
  const rows: readonly Line[] =
    lines ?? Object.entries(usage).map(([unit, count]) => ({ unit, count, nano: undefined }));
  const sum = lines?.reduce((all, { nano }) => all + BigInt(nano), 0n);
  const equal = sum !== undefined && costNano !== null && sum === BigInt(costNano);
  const columns = LINES.map((column) =>
    column.name === "Cost" ? { ...column, sum: usdExact(costNano) } : column,
  );
  return html`<${Box}
    title=${`Bill of call ${n}${part ? ` (${part})` : ""}`}
    flush=${true}
    actions=${html`<span class="row"><${Mark} tone=${state === "exact" ? "good" : state === "unpriced" ? "bad" : "warn"}>${state}<//>${equal && html`<span class="small quiet">computed again: the same</span>`}</span>`}
  >
    <${Table}
      label=${`Usage and price of call ${n}`}
      columns=${columns}
      rows=${rows}
      id=${({ unit }: Line) => unit}
    />
    <div class="in">
      <${Facts}
        of=${[
          ["Sent to", `${target.provider}/${target.model} as ${target.credential}`],
          ["Attempt", html`<code class="break">${charge.attempt}</code>`],
          [
            "Upstream's id",
            charge.upstreamId && html`<code class="break">${charge.upstreamId}</code>`,
          ],
          ["Held before", charge.holdNano === undefined ? undefined : usd(charge.holdNano)],
          [
            "Price row",
            charge.price && html`<code title=${charge.price}>${charge.price.slice(0, 16)}…</code>`,
          ],
          ["Ledger rows", charge.rows.join(", ")],
          ["Reserved", moment(charge.reservedAt)],
          ["Settled", charge.settledAt === undefined ? "not yet" : moment(charge.settledAt)],
        ]}
      />
      ${adjustments.map((each) => html`<p class="small" key=${each.row}>Corrected by ${usdExact(each.costNano)}: ${each.reason} <span class="faint">${each.actor}, ${moment(each.at)}</span></p>`)}
    </div>
  <//>`;
}

const More = ({ seen }: { seen: Seen }) =>
  html`<${Box} title="Facts"
    ><${Facts}
      of=${[
        [
          "Key",
          seen.key &&
            html`<a href=${addressOf("/usage", { by: "model", key: seen.key })}
              >${seen.keyName ?? seen.key}</a
            >`,
        ],
        ["Account", seen.account],
        [
          "Asked at",
          `${seen.frontend} (${seen.protocol || "no protocol"}), ${seen.method} ${seen.route}`,
        ],
        ["Alias", seen.alias],
        ["Lane", seen.lane],
        ["Finish", seen.finish],
        [
          "Failed as",
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
                  href=${addressOf("/usage", { by: "model", label: `${name}=${value}` })}
                  >${name}=${value}</a
                > `,
            ),
        ],
        ["Privacy", seen.privacy === "off" ? undefined : seen.privacy],
        ["Privacy receipt", seen.receipt && html`<code class="break">${seen.receipt}</code>`],
        [
          "Size",
          seen.bytesIn === undefined
            ? undefined
            : `${size(seen.bytesIn)} in, ${size(seen.bytesOut ?? 0)} out`,
        ],
        [
          "Client's own id",
          seen.clientRequestId && html`<code class="break">${seen.clientRequestId}</code>`,
        ],
        ["Trace", seen.trace && html`<code class="break">${seen.trace.traceId}</code>`],
        ["Answered by", `config ${seen.generation}, process ${seen.worker}`],
      ]}
  /><//>`;
