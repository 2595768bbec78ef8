// Details of a provider: its cooldowns and last errors, a test call, and a button to reset its
// cooldowns.
import { html } from "htm/preact";
import { useCommand } from "../../use-query.ts";
import { icon } from "../../parts/icons.ts";
import { Drawer, toast } from "../../parts/overlay.ts";
import { Box, EmptyState, FactList, Badge, ErrorNote } from "../../parts/basics.ts";
import { Table } from "../../parts/table.ts";
import { isAllowed } from "../../session.ts";
import { buildUrl } from "../../location.ts";
import { formatAgo, formatCount, formatDateTime, formatDuration } from "../../format.ts";
import { History } from "./providers-history.ts";
import {
  type Credential,
  type Provider,
  providerState,
  type TestsResponse,
} from "./providers-types.ts";

const STATE_LABELS: Readonly<Record<string, string>> = {
  credential_rejected: "in cooldown: the provider rejected the credential",
  retry_after: "in cooldown: the provider sent retry-after",
  open: "in cooldown: its requests fail",
  half_open: "cooldown over: the next request is a probe",
  recovering: "recovering: its share of requests grows gradually",
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
  const state = providerState(one);
  return html`<${Drawer}
    title=${one.name}
    close=${close}
    actions=${html`<${Badge} tone=${state.tone}>${state.label}<//>`}
  >
    <${FactList}
      of=${[
        ["Protocols", one.protocols.join(", ")],
        [
          "Models",
          html`<a href=${buildUrl("/models", { provider: one.name })}
            >${formatCount(one.modelCount)} known</a
          >`,
        ],
        [
          "Last hour",
          one.lastHour
            ? `${formatCount(one.lastHour.requests)} calls, ${formatCount(one.lastHour.failed)} failed, ${formatCount(one.lastHour.canceled)} canceled`
            : "no calls",
        ],
        [
          "First token",
          one.lastHour?.firstTokenMs &&
            `p50 ${formatDuration(one.lastHour.firstTokenMs.p50)}, p95 ${formatDuration(one.lastHour.firstTokenMs.p95)}, p99 ${formatDuration(one.lastHour.firstTokenMs.p99)}`,
        ],
        [
          "Total duration",
          one.lastHour?.ms &&
            `p50 ${formatDuration(one.lastHour.ms.p50)}, p95 ${formatDuration(one.lastHour.ms.p95)}, p99 ${formatDuration(one.lastHour.ms.p99)}`,
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
    <${TestProvider} one=${one} again=${again} />
    <${History} provider=${one.name} outages=${one.outages} />
    <${Box} title="Credentials" flush>
      <${Table}
        label="Credentials"
        rows=${one.credentials}
        rowId=${(row: Credential) => row.name}
        columns=${CREDENTIAL_COLUMNS}
      />
    <//>
    <${Box} title="Recent errors" flush>
      <${Table}
        label="Recent errors"
        rows=${one.recentFaults}
        rowId=${(row: Provider["recentFaults"][number]) => `${row.request} ${row.model}`}
        empty=${html`<${EmptyState} of="check"><p>The history has no failed request to this provider.</p><//>`}
        columns=${FAULT_COLUMNS}
      />
    <//>
  <//>`;
}

function TestProvider({ one, again }: { one: Provider; again: () => void }) {
  const test = useCommand<TestsResponse>("providers.test");
  const reset = useCommand<{ reset: readonly string[] }>("providers.reset");
  const runReset = async () => {
    if (!(await reset.run({ provider: one.name }))) return;
    toast(`The cooldowns of ${one.name} were ended.`);
    again();
  };
  const tried = async () => {
    await test.run({ provider: one.name });
    again();
  };
  if (!isAllowed("providers.test") || !isAllowed("providers.reset")) return null;
  const rests = one.credentials.some(({ cooldowns }) => cooldowns.length > 0);
  return html`<${Box}
    title="Test"
    actions=${html` <button
        type="button"
        class="button"
        disabled=${!rests || reset.isRunning}
        onClick=${runReset}
      >
        End cooldowns
      </button>
      <button type="button" class="button main" disabled=${test.isRunning} onClick=${tried}>
        ${icon("play")}${test.isRunning ? "Calling…" : "Test call"}
      </button>`}
  >
    <p class="small quiet">
      A test call sends one small request with each credential, to its cheapest chat model. It is
      billed under the key <code>operator</code>. Ending cooldowns applies to all processes.
    </p>
    ${[test.error, reset.error].map((problem) => problem && html`<${ErrorNote} problem=${problem} />`)}
    ${
      test.value &&
      html`<ul class="todo" aria-live="polite">
        ${test.value.tests.map(
          (each) =>
            html`<li key=${each.credential}>
              <${Badge} tone=${each.ok ? "good" : "bad"}>${each.ok ? "Works" : "Fails"}<//>
              <div class="grow">
                <strong class="strong">${each.credential}</strong>${" "}
                ${each.model && html`<span class="quiet">${each.model}</span>`}
                ${each.reason && html`<div class="bad">${each.reason}</div>`}
                ${each.ms !== undefined && html`<div class="small quiet">${formatDuration(each.ms)}${each.usd ? html`, $${each.usd}` : ", no price"}${each.request && html`, <a href=${buildUrl(`/requests/${each.request}`)}>request</a>`}</div>`}
              </div>
            </li>`,
        )}
      </ul>`
    }
  <//>`;
}

const CREDENTIAL_COLUMNS = [
  { name: "Credential", isRowHeader: true, render: (row: Credential) => row.name },
  { name: "Share", isNumber: true, render: (row: Credential) => row.weight },
  {
    name: "State",
    render: (row: Credential) =>
      row.cooldowns.length === 0
        ? html`<span class="good">no cooldown</span>`
        : row.cooldowns.map(
            (rest) =>
              html`<div key=${rest.model}>
                <span class="warn">${rest.model ?? "all models"}:</span>
                ${` ${STATE_LABELS[rest.state] ?? rest.state} (${rest.reason})`}${rest.until > Date.now() && html`, until ${formatAgo(rest.until)}; ${rest.rejectsRequests ? "no request is sent" : "tried last"}`}
              </div>`,
          ),
  },
  { name: "List", isNumber: true, render: (row: Credential) => row.modelList?.modelCount ?? "–" },
];

const FAULT_COLUMNS = [
  {
    name: "When",
    render: (row: Provider["recentFaults"][number]) =>
      html`<span title=${formatDateTime(row.at)}>${formatAgo(row.at)}</span>`,
  },
  {
    name: "Why",
    render: (row: Provider["recentFaults"][number]) =>
      html`<span class="bad">${row.code ?? row.kind}</span>`,
  },
  {
    name: "Model",
    render: (row: Provider["recentFaults"][number]) =>
      html`<span class="cut" title=${row.model}>${row.model}</span>`,
  },
  { name: "Credential", render: (row: Provider["recentFaults"][number]) => row.credential },
  {
    name: "Request",
    render: (row: Provider["recentFaults"][number]) =>
      html`<a href=${buildUrl(`/requests/${row.request}`)}>request</a>`,
  },
];
