// Models page: available models with price, data policy, and retirement date.
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import { useQuery } from "../../use-query.ts";
import { Select, TextField } from "../../parts/fields.ts";
import {
  Box,
  EmptyState,
  Figures,
  Badge,
  CommandLineHint,
  QueryResult,
} from "../../parts/basics.ts";
import { Table } from "../../parts/table.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import { formatCompact, formatCount, isWithin } from "../../format.ts";
import { type Alias, Aliases } from "./models-aliases.ts";
import { ModelDetail, type Price } from "./models-detail.ts";

interface ListedModel {
  readonly id: string;
  readonly provider: string;
  readonly operation: string;
  readonly limits?: { readonly context?: number; readonly output?: number };
  readonly price?: Price;
  readonly retires?: string;
  readonly policy?: Policy;
}
interface Policy {
  readonly zeroRetention?: boolean;
  readonly reasons?: readonly string[];
  readonly [fact: string]: unknown;
}
const SOON_DAYS = 60;

export function ModelsPage() {
  const [search, setSearch] = useQueryParam("q");
  const [provider, setProvider] = useQueryParam("provider");
  const [operation, setOperation] = useQueryParam("operation");
  const [privacy, setPrivacy] = useQueryParam("privacy");
  const [chosen, choose] = useQueryParam("model");
  const answer = useQuery<{ models: readonly ListedModel[]; aliases: readonly Alias[] }>(
    "models.list",
    privacy ? { privacy } : {},
  );
  const all = answer.value?.models ?? [];
  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter(
      (one) =>
        (!provider || one.provider === provider) &&
        (!operation || one.operation === operation) &&
        words.every((word) => one.id.toLowerCase().includes(word)),
    );
  }, [all, search, provider, operation]);
  const names = (of: (one: ListedModel) => string) => [...new Set(all.map(of))].toSorted();
  return html` <${Box}>
      <div class="filters">
        <${TextField}
          name="Search"
          type="search"
          wide
          value=${search}
          set=${setSearch}
          placeholder="part of a name"
        />
        <${Select}
          name="Provider"
          value=${provider}
          set=${setProvider}
          options=${[["", "all"], ...names((one) => one.provider)]}
        />
        <${Select}
          name="Operation"
          value=${operation}
          set=${setOperation}
          options=${[["", "all"], ...names((one) => one.operation)]}
        />
        <${Select}
          name="Data policy"
          value=${privacy}
          set=${setPrivacy}
          options=${[
            ["", "any"],
            ["required", "Service-ZDR: required"],
            ["strict", "Service-ZDR: strict"],
          ]}
        />
      </div>
    <//>
    <${QueryResult} of=${answer}
      >${() => html`
        <${Summary} rows=${rows} all=${all.length} />
        <${Aliases} all=${answer.value?.aliases ?? []} models=${all} search=${search} />
        <${Box} title="Models" flush>
          <${Table}
            label="Models"
            rows=${rows}
            rowId=${(row: ListedModel) => row.id}
            onOpen=${(row: ListedModel) => choose(row.id)}
            selectedId=${chosen}
            empty=${html`<${EmptyState} of="models"><p>${all.length === 0 ? "No model is known. Mount a provider in gateway.yaml, or refresh its list." : "No model matches."}</p><//>`}
            columns=${COLUMNS}
          />
        <//>
        <p class="small faint">
          Prices are in US dollars per million tokens. Open a model for other units and the sources.
        </p>
        <${CommandLineHint}
          line=${`tollgate models${operation ? ` --operation ${operation}` : ""}${provider ? ` --provider ${provider}` : ""}${privacy ? ` --zdr ${privacy}` : ""}`}
        />
      `}<//
    >
    ${chosen && html`<${ModelDetail} model=${chosen} key=${chosen} close=${() => choose("")} />`}`;
}

function Summary({ rows, all }: { rows: readonly ListedModel[]; all: number }) {
  const going = rows.filter(
    ({ retires }) => retires !== undefined && isWithin(Date.parse(retires), SOON_DAYS),
  );
  const unpriced = rows.filter(
    ({ price, id, provider: its }) => !price && id.startsWith(`${its}/`),
  );
  return html`<${Figures}
    of=${[
      {
        name: "Models",
        value: formatCount(rows.length),
        note: rows.length < all ? `of ${formatCount(all)}` : "all known models",
      },
      { name: "Providers", value: formatCount(new Set(rows.map((one) => one.provider)).size) },
      {
        name: "Without a price",
        value: formatCount(unpriced.length),
        note: unpriced.length > 0 ? "calls have no cost" : "every model has one",
        tone: unpriced.length > 0 ? "warn" : "good",
      },
      {
        name: "Retire within 60 days",
        value: formatCount(going.length),
        tone: going.length > 0 ? "warn" : "good",
        note: going[0]?.id ?? "none",
      },
    ]}
  />`;
}

/** Returns the price per million units, or undefined if the model is not priced that way. */
const pricePerMillion = (price: Price | undefined, unit: string): number | undefined => {
  const line = price?.lines.find((each) => each.unit === unit && each.per > 1 && !each.variant);
  return line && Number(line.usd);
};

const renderDollars = (of: number | undefined) =>
  of === undefined || Number.isNaN(of)
    ? html`<span class="faint">–</span>`
    : `$${of.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;

const COLUMNS = [
  {
    name: "Model",
    isRowHeader: true,
    sortKey: (row: ListedModel) => row.id,
    render: (row: ListedModel) =>
      html`<a href=${buildUrl("/models", { model: row.id })} class="nowrap">${row.id}</a>`,
  },
  {
    name: "Kind",
    sortKey: (row: ListedModel) => row.operation,
    render: (row: ListedModel) => row.operation,
  },
  {
    name: "Context",
    isNumber: true,
    sortKey: (row: ListedModel) => row.limits?.context ?? 0,
    render: (row: ListedModel) =>
      row.limits?.context ? formatCompact(row.limits.context) : html`<span class="faint">–</span>`,
  },
  {
    name: "Input",
    isNumber: true,
    sortKey: (row: ListedModel) => pricePerMillion(row.price, "input") ?? -1,
    render: (row: ListedModel) => renderDollars(pricePerMillion(row.price, "input")),
  },
  {
    name: "Cached",
    isNumber: true,
    sortKey: (row: ListedModel) => pricePerMillion(row.price, "cache_read") ?? -1,
    render: (row: ListedModel) => renderDollars(pricePerMillion(row.price, "cache_read")),
  },
  {
    name: "Output",
    isNumber: true,
    sortKey: (row: ListedModel) => pricePerMillion(row.price, "output") ?? -1,
    render: (row: ListedModel) => renderDollars(pricePerMillion(row.price, "output")),
  },
  {
    name: "Retires",
    sortKey: (row: ListedModel) => row.retires ?? "",
    render: (row: ListedModel) =>
      row.retires
        ? html`<${Badge} tone=${isWithin(Date.parse(row.retires), SOON_DAYS) ? "warn" : ""}
            >${row.retires.slice(0, 10)}<//
          >`
        : html`<span class="faint">–</span>`,
  },
];
