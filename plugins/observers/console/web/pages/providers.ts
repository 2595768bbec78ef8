// Providers: which answer, how fast, what is cooling down and why.
import { html } from "htm/preact";
import { useAsk, type Answer } from "../data.ts";
import { Box, Empty, Facts, Figures, Mark, SameAs, Shown } from "../parts/plain.ts";
import { type Column, Table } from "../parts/table.ts";
import { addressOf, useWord } from "../place.ts";
import { ago, brief, count, moment, share, span } from "../words.ts";
import { ProviderDetail } from "./providers-detail.ts";
import { Strip, useHours } from "./providers-history.ts";
import { type Health, type Provider, stateOf } from "./providers-shapes.ts";

const EVERY_MS = 5_000;
export function Providers() {
  const answer = useAsk<Health>("providers.list", {}, { every: EVERY_MS });
  const [chosen, choose] = useWord("provider");
  const now = Date.now();
  const hours = useHours(now);
  const columns = [
    ...COLUMNS.slice(0, 2),
    {
      name: "Last 24 hours",
      of: (row: Provider) => html`<${Strip} hours=${hours.get(row.name)} now=${now} />`,
    },
    ...COLUMNS.slice(2),
  ];
  return html`<${Shown} of=${answer}
    >${(value: Health) => page(value, answer, { chosen, choose, columns })}<//
  >`;
}

interface PageParts {
  readonly chosen: string;
  readonly choose: (to: string) => void;
  readonly columns: readonly Column<Provider>[];
}

function page(value: Health, answer: Answer<Health>, { chosen, choose, columns }: PageParts) {
  const { providers, leftOut, since } = value;
  const one = providers.find(({ name }) => name === chosen);
  const rests = providers.flatMap(({ credentials }) =>
    credentials.flatMap(({ resting }) => resting),
  );
  const calls = sum(providers, (hour) => hour.requests);
  const failed = sum(providers, (hour) => hour.failed);
  if (providers.length === 0 && leftOut.length === 0)
    return html`<${Box}
      ><${Empty} of="providers"
        ><p>
          No provider is mounted. Put one under <code>providers:</code> in gateway.yaml;
          <code>tollgate init</code> prints one to start from.
        </p><//
      ><//
    >`;
  return html` <${Figures}
      of=${[
        {
          name: "Providers",
          value: count(providers.length),
          note: leftOut.length > 0 ? `${leftOut.length} not mounted` : "all mounted",
        },
        {
          name: "Cooling down",
          value: count(rests.length),
          tone: rests.length > 0 ? "warn" : "good",
          note: rests.length > 0 ? "see below" : "none",
        },
        { name: "Calls, last hour", value: brief(calls), title: count(calls) },
        {
          name: "Failed, last hour",
          value: share(failed, calls),
          note: `${count(failed)} calls`,
          tone: failed > 0 ? "bad" : "good",
        },
      ]}
    />
    <${Box} title="Health" flush>
      <${Table}
        label="Providers"
        rows=${providers}
        id=${(row: Provider) => row.name}
        open=${(row: Provider) => choose(row.name)}
        chosen=${chosen}
        columns=${columns}
      />
    <//>
    ${leftOut.length > 0 && html`<${Box} title="Not mounted"><${Facts} of=${leftOut.map(({ provider, why }) => [provider, why] as const)} /><//>`}
    <div class="stack tight">
      <p class="small faint">
        Calls are counted since ${moment(since)}. Numbers are of the last hour, unless a column says
        otherwise.
      </p>
      <${SameAs} line="tollgate providers" />
    </div>
    ${one && html`<${ProviderDetail} one=${one} key=${one.name} close=${() => choose("")} again=${answer.again} />`}`;
}

const sum = (of: readonly Provider[], by: (hour: NonNullable<Provider["hour"]>) => number) =>
  of.reduce((all, { hour }) => all + (hour ? by(hour) : 0), 0);

function listOf({ credentials }: Provider) {
  const lists = credentials.flatMap(({ list }) => (list ? [list] : []));
  const error = lists.find(({ lastError }) => lastError)?.lastError;
  if (error) return html`<span class="bad cut" title=${error.message}>${error.message}</span>`;
  const oldest = Math.min(...lists.map(({ lastOk }) => lastOk ?? Infinity));
  if (lists.length === 0) return html`<span class="faint">no list</span>`;
  return Number.isFinite(oldest)
    ? html`<span title=${moment(oldest)}>${ago(oldest)}</span>`
    : "not yet";
}

const COLUMNS: readonly Column<Provider>[] = [
  {
    name: "Provider",
    head: true,
    by: (row: Provider) => row.name,
    of: (row: Provider) =>
      html`<a href=${addressOf("/providers", { provider: row.name })}>${row.name}</a>`,
  },
  {
    name: "State",
    by: (row: Provider) => stateOf(row).said,
    of: (row: Provider) => html`<${Mark} tone=${stateOf(row).tone}>${stateOf(row).said}<//>`,
  },
  {
    name: "Calls 1 h",
    number: true,
    by: (row: Provider) => row.hour?.requests ?? 0,
    of: (row: Provider) => brief(row.hour?.requests ?? 0),
  },
  {
    name: "Failed",
    number: true,
    by: (row: Provider) => row.hour?.failed ?? 0,
    of: (row: Provider) =>
      html`<span class=${row.hour?.failed ? "bad" : "faint"}
        >${row.hour ? share(row.hour.failed, row.hour.requests) : "–"}</span
      >`,
  },
  {
    name: "First token p50",
    number: true,
    by: (row: Provider) => row.hour?.firstContentMs?.p50 ?? 0,
    of: (row: Provider) => span(row.hour?.firstContentMs?.p50),
  },
  {
    name: "p95",
    number: true,
    by: (row: Provider) => row.hour?.firstContentMs?.p95 ?? 0,
    of: (row: Provider) => span(row.hour?.firstContentMs?.p95),
  },
  {
    name: "Models",
    number: true,
    by: (row: Provider) => row.models,
    of: (row: Provider) => count(row.models),
  },
  { name: "Model list", of: (row: Provider) => listOf(row) },
];
