// Providers page: health, latency, and cooldowns with their reasons.
import { html } from "htm/preact";
import { useQuery, type QueryState } from "../../use-query.ts";
import {
  Box,
  EmptyState,
  FactList,
  Figures,
  Badge,
  CommandLineHint,
  QueryResult,
} from "../../parts/basics.ts";
import { type Column, Table } from "../../parts/table.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import {
  formatAgo,
  formatCompact,
  formatCount,
  formatDateTime,
  formatShare,
  formatDuration,
} from "../../format.ts";
import { ProviderDetail } from "./providers-detail.ts";
import { HealthStrip, useHours } from "./providers-history.ts";
import { type ProvidersResponse, type Provider, providerState } from "./providers-types.ts";

const POLL_MS = 5_000;
export function ProvidersPage() {
  const answer = useQuery<ProvidersResponse>("providers.list", {}, { intervalMs: POLL_MS });
  const [chosen, choose] = useQueryParam("provider");
  const now = Date.now();
  const hours = useHours(now);
  const columns = [
    ...COLUMNS.slice(0, 2),
    {
      name: "Last 24 hours",
      render: (row: Provider) => html`<${HealthStrip} hours=${hours.get(row.name)} now=${now} />`,
    },
    ...COLUMNS.slice(2),
  ];
  return html`<${QueryResult} of=${answer}
    >${(value: ProvidersResponse) => renderProviders(value, answer, { chosen, choose, columns })}<//
  >`;
}

interface PageParts {
  readonly chosen: string;
  readonly choose: (to: string) => void;
  readonly columns: readonly Column<Provider>[];
}

function renderProviders(
  value: ProvidersResponse,
  answer: QueryState<ProvidersResponse>,
  { chosen, choose, columns }: PageParts,
) {
  const { providers, unmountedProviders, countedSince } = value;
  const one = providers.find(({ name }) => name === chosen);
  const rests = providers.flatMap(({ credentials }) =>
    credentials.flatMap(({ cooldowns }) => cooldowns),
  );
  const calls = sumHours(providers, (hour) => hour.requests);
  const failed = sumHours(providers, (hour) => hour.failed);
  if (providers.length === 0 && unmountedProviders.length === 0)
    return html`<${Box}
      ><${EmptyState} of="providers"
        ><p>
          No provider is configured. Add one under <code>providers:</code> in gateway.yaml;
          <code>tollgate init</code> prints one to start from.
        </p><//
      ><//
    >`;
  return html` <${Figures}
      of=${[
        {
          name: "Providers",
          value: formatCount(providers.length),
          note:
            unmountedProviders.length > 0
              ? `${unmountedProviders.length} not mounted`
              : "all mounted",
        },
        {
          name: "Cooling down",
          value: formatCount(rests.length),
          tone: rests.length > 0 ? "warn" : "good",
          note: rests.length > 0 ? "see below" : "none",
        },
        { name: "Calls, last hour", value: formatCompact(calls), title: formatCount(calls) },
        {
          name: "Failed, last hour",
          value: formatShare(failed, calls),
          note: `${formatCount(failed)} calls`,
          tone: failed > 0 ? "bad" : "good",
        },
      ]}
    />
    <${Box} title="Health" flush>
      <${Table}
        label="Providers"
        rows=${providers}
        rowId=${(row: Provider) => row.name}
        onOpen=${(row: Provider) => choose(row.name)}
        selectedId=${chosen}
        columns=${columns}
      />
    <//>
    ${unmountedProviders.length > 0 && html`<${Box} title="Not mounted"><${FactList} of=${unmountedProviders.map(({ provider, reason }) => [provider, reason] as const)} /><//>`}
    <div class="stack tight">
      <p class="small faint">
        Calls are counted since ${formatDateTime(countedSince)}. Numbers are for the last hour,
        unless a column says otherwise.
      </p>
      <${CommandLineHint} line="tollgate providers" />
    </div>
    ${one && html`<${ProviderDetail} one=${one} key=${one.name} close=${() => choose("")} again=${answer.refetch} />`}`;
}

const sumHours = (
  of: readonly Provider[],
  by: (hour: NonNullable<Provider["lastHour"]>) => number,
) => of.reduce((all, { lastHour }) => all + (lastHour ? by(lastHour) : 0), 0);

function renderListState({ credentials }: Provider) {
  const lists = credentials.flatMap(({ modelList }) => (modelList ? [modelList] : []));
  const error = lists.find(({ lastError }) => lastError)?.lastError;
  if (error) return html`<span class="bad cut" title=${error.message}>${error.message}</span>`;
  const oldest = Math.min(...lists.map(({ lastSuccessAt }) => lastSuccessAt ?? Infinity));
  if (lists.length === 0) return html`<span class="faint">no list</span>`;
  return Number.isFinite(oldest)
    ? html`<span title=${formatDateTime(oldest)}>${formatAgo(oldest)}</span>`
    : "not yet";
}

const COLUMNS: readonly Column<Provider>[] = [
  {
    name: "Provider",
    isRowHeader: true,
    sortKey: (row: Provider) => row.name,
    render: (row: Provider) =>
      html`<a href=${buildUrl("/providers", { provider: row.name })}>${row.name}</a>`,
  },
  {
    name: "State",
    sortKey: (row: Provider) => providerState(row).label,
    render: (row: Provider) =>
      html`<${Badge} tone=${providerState(row).tone}>${providerState(row).label}<//>`,
  },
  {
    name: "Calls 1 h",
    isNumber: true,
    sortKey: (row: Provider) => row.lastHour?.requests ?? 0,
    render: (row: Provider) => formatCompact(row.lastHour?.requests ?? 0),
  },
  {
    name: "Failed",
    isNumber: true,
    sortKey: (row: Provider) => row.lastHour?.failed ?? 0,
    render: (row: Provider) =>
      html`<span class=${row.lastHour?.failed ? "bad" : "faint"}
        >${row.lastHour ? formatShare(row.lastHour.failed, row.lastHour.requests) : "–"}</span
      >`,
  },
  {
    name: "First token p50",
    isNumber: true,
    sortKey: (row: Provider) => row.lastHour?.firstTokenMs?.p50 ?? 0,
    render: (row: Provider) => formatDuration(row.lastHour?.firstTokenMs?.p50),
  },
  {
    name: "p95",
    isNumber: true,
    sortKey: (row: Provider) => row.lastHour?.firstTokenMs?.p95 ?? 0,
    render: (row: Provider) => formatDuration(row.lastHour?.firstTokenMs?.p95),
  },
  {
    name: "Models",
    isNumber: true,
    sortKey: (row: Provider) => row.modelCount,
    render: (row: Provider) => formatCount(row.modelCount),
  },
  { name: "Model list", render: (row: Provider) => renderListState(row) },
];
