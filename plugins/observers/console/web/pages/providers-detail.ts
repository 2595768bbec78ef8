// One provider at length: what is known against it, what failed last, a call to try it, an end of its cooldowns.
import { html } from "htm/preact";
import { useAct } from "../act.ts";
import { icon } from "../parts/icons.ts";
import { Drawer } from "../parts/over.ts";
import { Box, Empty, Facts, Mark, Trouble } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { toast } from "../parts/toasts.ts";
import { may } from "../rights.ts";
import { addressOf } from "../place.ts";
import { ago, count, moment, span } from "../words.ts";
import { History } from "./providers-history.ts";
import { type Credential, type Provider, stateOf, type Tests } from "./providers-shapes.ts";

const STATES: Readonly<Record<string, string>> = {
  refused: "cooling down: its credential was rejected",
  told: "cooling down: it sent retry-after",
  open: "cooling down: its requests fail",
  half_open: "cooldown over: the next request probes",
  recovering: "recovering: gets more requests step by step",
};

export function ProviderDetail({
  one,
  close,
  again,
}: {
  one: Provider;
  close: () => void;
  again: () => void;
}) {
  const state = stateOf(one);
  return html`<${Drawer}
    title=${one.name}
    close=${close}
    actions=${html`<${Mark} tone=${state.tone}>${state.said}<//>`}
  >
    <${Facts}
      of=${[
        ["Protocols", one.protocols.join(", ")],
        [
          "Models",
          html`<a href=${addressOf("/models", { provider: one.name })}
            >${count(one.models)} known</a
          >`,
        ],
        [
          "Last hour",
          one.hour
            ? `${count(one.hour.requests)} calls, ${count(one.hour.failed)} failed, ${count(one.hour.canceled)} canceled`
            : "no calls",
        ],
        [
          "First token",
          one.hour?.firstContentMs &&
            `p50 ${span(one.hour.firstContentMs.p50)}, p95 ${span(one.hour.firstContentMs.p95)}, p99 ${span(one.hour.firstContentMs.p99)}`,
        ],
        [
          "Whole call",
          one.hour?.ms &&
            `p50 ${span(one.hour.ms.p50)}, p95 ${span(one.hour.ms.p95)}, p99 ${span(one.hour.ms.p99)}`,
        ],
        [
          "Connections",
          one.pools.length === 0
            ? undefined
            : one.pools.map(
                ({ origin, connected, running, queued }) =>
                  html`<div key=${origin}>
                    <code>${origin}</code>
                    ${`${connected} open, ${running} busy`}${queued > 0 && html`, <span class="warn">${queued} waiting</span>`}
                  </div>`,
              ),
        ],
      ]}
    />
    <${TryIt} one=${one} again=${again} />
    <${History} provider=${one.name} outages=${one.outages} />
    <${Box} title="Credentials" flush>
      <${Table}
        label="Credentials"
        rows=${one.credentials}
        id=${(row: Credential) => row.name}
        columns=${CREDENTIALS}
      />
    <//>
    <${Box} title="Recent errors" flush>
      <${Table}
        label="Recent errors"
        rows=${one.faults}
        id=${(row: Provider["faults"][number]) => `${row.request} ${row.model}`}
        empty=${html`<${Empty} of="check"><p>No remembered request has failed here.</p><//>`}
        columns=${FAULTS}
      />
    <//>
  <//>`;
}

function TryIt({ one, again }: { one: Provider; again: () => void }) {
  const test = useAct<Tests>("providers.test");
  const wake = useAct<{ woken: readonly string[] }>("providers.wake");
  const waken = async () => {
    if (!(await wake.run({ provider: one.name }))) return;
    toast(`${one.name} will be asked again.`);
    again();
  };
  const tried = async () => {
    await test.run({ provider: one.name });
    again();
  };
  if (!may("providers.test") || !may("providers.wake")) return null;
  const rests = one.credentials.some(({ resting }) => resting.length > 0);
  return html`<${Box}
    title="Test"
    actions=${html` <button
        type="button"
        class="button"
        disabled=${!rests || wake.busy}
        onClick=${waken}
      >
        End cooldowns
      </button>
      <button type="button" class="button main" disabled=${test.busy} onClick=${tried}>
        ${icon("play")}${test.busy ? "Asking…" : "Test call"}
      </button>`}
  >
    <p class="small quiet">
      A test call sends one small request with each credential, to its cheapest chat model. It is
      billed under the key <code>operator</code>. Ending cooldowns applies to all processes.
    </p>
    ${[test.problem, wake.problem].map((problem) => problem && html`<${Trouble} problem=${problem} />`)}
    ${
      test.value &&
      html`<ul class="todo" aria-live="polite">
        ${test.value.tests.map(
          (each) =>
            html`<li key=${each.credential}>
              <${Mark} tone=${each.ok ? "good" : "bad"}>${each.ok ? "Answers" : "Fails"}<//>
              <div class="grow">
                <strong class="strong">${each.credential}</strong>${" "}
                ${each.model && html`<span class="quiet">${each.model}</span>`}
                ${each.why && html`<div class="bad">${each.why}</div>`}
                ${each.ms !== undefined && html`<div class="small quiet">${span(each.ms)}${each.usd ? html`, $${each.usd}` : ", no price"}${each.request && html`, <a href=${addressOf(`/requests/${each.request}`)}>request</a>`}</div>`}
              </div>
            </li>`,
        )}
      </ul>`
    }
  <//>`;
}

const CREDENTIALS = [
  { name: "Credential", head: true, of: (row: Credential) => row.name },
  { name: "Share", number: true, of: (row: Credential) => row.weight },
  {
    name: "State",
    of: (row: Credential) =>
      row.resting.length === 0
        ? html`<span class="good">no cooldown</span>`
        : row.resting.map(
            (rest) =>
              html`<div key=${rest.model}>
                <span class="warn">${rest.model ?? "all models"}:</span>
                ${` ${STATES[rest.state] ?? rest.state} (${rest.why})`}${rest.until > Date.now() && html`, until ${ago(rest.until)}; ${rest.refuses ? "no request is sent" : "tried last"}`}
              </div>`,
          ),
  },
  { name: "List", number: true, of: (row: Credential) => row.list?.count ?? "–" },
];

const FAULTS = [
  {
    name: "When",
    of: (row: Provider["faults"][number]) =>
      html`<span title=${moment(row.at)}>${ago(row.at)}</span>`,
  },
  {
    name: "Why",
    of: (row: Provider["faults"][number]) => html`<span class="bad">${row.code ?? row.kind}</span>`,
  },
  {
    name: "Model",
    of: (row: Provider["faults"][number]) =>
      html`<span class="cut" title=${row.model}>${row.model}</span>`,
  },
  { name: "Credential", of: (row: Provider["faults"][number]) => row.credential },
  {
    name: "Request",
    of: (row: Provider["faults"][number]) =>
      html`<a href=${addressOf(`/requests/${row.request}`)}>request</a>`,
  },
];
