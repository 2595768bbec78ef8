// Details of a model: the price of a typical request, each fact with its source, and the data
// policy of each route.
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Drawer } from "../../parts/overlay.ts";
import { Box, FactList, Badge, CommandLineHint, QueryResult } from "../../parts/basics.ts";
import { Table } from "../../parts/table.ts";
import { buildUrl } from "../../location.ts";
import { formatCount } from "../../format.ts";

interface PriceLine {
  readonly unit: string;
  readonly usd: string;
  readonly per: number;
  readonly variant?: Readonly<Record<string, unknown>>;
}

export interface Price {
  readonly lines: readonly PriceLine[];
}

interface FactSource {
  readonly from: "operator" | "live" | "feed" | "shipped";
  readonly at?: string;
  readonly credential?: string;
  readonly pricedAs?: string;
}

interface ModelExplanation {
  readonly name: string;
  readonly models: readonly {
    readonly id: string;
    readonly provider: string;
    readonly operation: string;
    readonly listed: boolean;
    readonly requiresListing: boolean;
    readonly facts: readonly {
      readonly field: string;
      readonly value: unknown;
      readonly source: FactSource;
    }[];
    readonly example: {
      readonly description: string;
      readonly usd: string | null;
      readonly lines: readonly {
        readonly unit: string;
        readonly count: number;
        readonly usd: string;
      }[];
    };
    readonly retirement?: { readonly on: string; readonly days: number };
  }[];
  readonly suggestions: readonly string[];
}

interface PolicyExplanation {
  readonly routes: readonly {
    readonly id: string;
    readonly credential: string;
    readonly protocol: string | null;
    readonly statements: readonly {
      readonly level: string;
      readonly data: Readonly<Record<string, unknown>>;
    }[];
    readonly policy: { readonly reasons: readonly string[] };
    readonly satisfies: { readonly required: boolean; readonly strict: boolean };
  }[];
}

type Fact = ModelExplanation["models"][number]["facts"][number];
type PolicyPath = PolicyExplanation["routes"][number];

export function ModelDetail({ model, close }: { model: string; close: () => void }) {
  const answer = useQuery<ModelExplanation>("models.explain", { model });
  const ways = useQuery<PolicyExplanation>("policy.explain", { model });
  return html`<${Drawer}
    title=${model}
    close=${close}
    actions=${html`<a class="button" href=${buildUrl("/routing", { model })}>Explain the routing</a>`}
  >
    <${QueryResult} of=${answer}
      >${(value: ModelExplanation) =>
        html` ${value.models.map(
          (one) =>
            html`<div class="stack" key=${one.id}>
              ${value.models.length > 1 && html`<h3>${one.id}</h3>`}
              <div class="row">
                <${Badge} plain=${true}>${one.operation}<//>
                <${Badge} tone=${one.listed ? "good" : "warn"}
                  >${one.listed ? "a source lists it" : one.requiresListing ? "rejected until a source lists it" : "not listed by a source, but forwarded"}<//
                >
                ${one.retirement && html`<${Badge} tone=${one.retirement.days < 60 ? "warn" : ""}>${one.retirement.days < 0 ? "retired since" : "retires"} ${one.retirement.on.slice(0, 10)}<//>`}
              </div>
              <${Box} title="Cost of a standard request">
                <p class="row">
                  ${one.example.usd === null ? html`<span class="warn">Unknown. Calls are recorded without a price until you set one.</span>` : html`<strong class="strong">$${one.example.usd}</strong>`}
                  <span class="quiet">for ${one.example.description}</span>
                </p>
                <${FactList}
                  of=${one.example.lines.map((line) => [`${formatCount(line.count)} ${line.unit}`, `$${line.usd}`] as const)}
                />
              <//>
              <${Box} title="Model metadata and sources" flush>
                <${Table}
                  label="Facts"
                  rows=${one.facts}
                  rowId=${(row: Fact) => row.field}
                  columns=${FACT_COLUMNS}
                />
              <//>
            </div>`,
        )}
        ${value.suggestions.length > 0 && html`<p class="quiet">Similar names: ${value.suggestions.map((name) => html`<a key=${name} href=${buildUrl("/models", { model: name })}>${name}</a> `)}</p>`}`}<//
    >
    <${QueryResult} of=${ways}
      >${(value: PolicyExplanation) =>
        html`<${Box} title="Data handling by endpoint" flush>
          <${Table}
            label="Endpoints"
            rows=${value.routes}
            rowId=${(row: PolicyPath) => `${row.id} ${row.credential} ${row.protocol}`}
            columns=${PATH_COLUMNS}
          />
        <//>`}<//
    >
    <${CommandLineHint} line=${`tollgate models explain ${model}`} />
  <//>`;
}

const SOURCE_LABELS = {
  operator: "gateway.yaml",
  live: "the provider's model list",
  feed: "price feed",
  shipped: "shipped",
} as const;

const formatSource = ({ from, at, credential, pricedAs }: FactSource): string =>
  [
    SOURCE_LABELS[from],
    at && at.slice(0, 10),
    credential && `by ${credential}`,
    pricedAs && `as ${pricedAs}`,
  ]
    .filter(Boolean)
    .join(", ");

function renderValue({ field, value }: Fact) {
  const price = value as Partial<Price> | null;
  if (field === "price" && price?.lines)
    return price.lines.map(
      ({ unit, usd, per, variant }, at) =>
        html`<div key=${at}>
          ${`$${usd} for ${per === 1 ? "each" : "a million"} ${unit.replaceAll("_", " ")}`}${variant && ` (${formatValue(variant)})`}
        </div>`,
    );
  if (typeof value === "boolean") return value ? "yes" : "no";
  return formatValue(value);
}

const formatValue = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(formatValue).join(", ")
    : typeof value === "object" && value !== null
      ? Object.entries(value)
          .map(([name, each]) => `${name}: ${formatValue(each)}`)
          .join("; ")
      : typeof value === "number"
        ? formatCount(value)
        : String(value);

const FACT_COLUMNS = [
  {
    name: "Fact",
    isRowHeader: true,
    sortKey: (row: Fact) => row.field,
    render: (row: Fact) => row.field,
  },
  {
    name: "Value",
    render: (row: Fact) => html`<span class="break">${renderValue(row)}</span>`,
  },
  {
    name: "Source",
    sortKey: (row: Fact) => row.source.from,
    render: (row: Fact) =>
      html`<span class="quiet" title=${row.source.at}>${formatSource(row.source)}</span>`,
  },
];

const PATH_COLUMNS = [
  {
    name: "Way",
    isRowHeader: true,
    render: (row: PolicyPath) =>
      html`${row.credential}
        <div class="small faint">${row.protocol ?? "its own protocol"}</div>`,
  },
  {
    name: "Service-ZDR",
    render: (row: PolicyPath) =>
      html`<${Badge} tone=${row.satisfies.required ? "good" : ""}
        >${row.satisfies.strict ? "strict" : row.satisfies.required ? "required" : "no"}<//
      >`,
  },
  {
    name: "Why",
    render: (row: PolicyPath) =>
      html`<span class="small quiet">${row.policy.reasons.join(", ") || "no objection"}</span>`,
  },
  {
    name: "Evidence",
    render: (row: PolicyPath) =>
      html`<span class="small faint">${row.statements.map(({ level }) => level).join(", ")}</span>`,
  },
];
