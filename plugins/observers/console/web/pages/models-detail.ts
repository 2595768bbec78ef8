// One model at length: what a plain request costs, each fact with the source that says so, and what becomes of data way by way.
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Drawer } from "../parts/over.ts";
import { Box, Facts, Mark, SameAs, Shown } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { addressOf } from "../place.ts";
import { count } from "../words.ts";

interface PriceLine {
  readonly unit: string;
  readonly usd: string;
  readonly per: number;
  readonly variant?: Readonly<Record<string, unknown>>;
}

export interface Price {
  readonly lines: readonly PriceLine[];
}

interface Source {
  readonly from: "operator" | "live" | "shipped";
  readonly at?: string;
  readonly credential?: string;
  readonly as?: string;
}

interface Explained {
  readonly name: string;
  readonly models: readonly {
    readonly id: string;
    readonly provider: string;
    readonly kind: string;
    readonly listed: boolean;
    readonly awaitsList: boolean;
    readonly facts: readonly {
      readonly field: string;
      readonly value: unknown;
      readonly source: Source;
    }[];
    readonly example: {
      readonly about: string;
      readonly usd: string | null;
      readonly lines: readonly {
        readonly unit: string;
        readonly count: number;
        readonly usd: string;
      }[];
    };
    readonly retires?: { readonly on: string; readonly days: number };
  }[];
  readonly near: readonly string[];
}

interface Ways {
  readonly ways: readonly {
    readonly id: string;
    readonly credential: string;
    readonly protocol: string | null;
    readonly sayings: readonly {
      readonly level: string;
      readonly data: Readonly<Record<string, unknown>>;
    }[];
    readonly policy: { readonly because: readonly string[] };
    readonly would: { readonly required: boolean; readonly strict: boolean };
  }[];
}

type Fact = Explained["models"][number]["facts"][number];
type Way = Ways["ways"][number];

export function ModelDetail({ model, close }: { model: string; close: () => void }) {
  const answer = useAsk<Explained>("models.explain", { model });
  const ways = useAsk<Ways>("policy.explain", { model });
  return html`<${Drawer}
    title=${model}
    close=${close}
    actions=${html`<a class="button" href=${addressOf("/routing", { model })}>Why this one</a>`}
  >
    <${Shown} of=${answer}
      >${(value: Explained) =>
        html` ${value.models.map(
          (one) =>
            html`<div class="stack" key=${one.id}>
              ${value.models.length > 1 && html`<h3>${one.id}</h3>`}
              <div class="row">
                <${Mark} plain=${true}>${one.kind}<//>
                <${Mark} tone=${one.listed ? "good" : "warn"}
                  >${one.listed ? "a source lists it" : one.awaitsList ? "refused until a list has it" : "no source lists it; forwarded all the same"}<//
                >
                ${one.retires && html`<${Mark} tone=${one.retires.days < 60 ? "warn" : ""}>${one.retires.days < 0 ? "should be gone since" : "retires"} ${one.retires.on.slice(0, 10)}<//>`}
              </div>
              <${Box} title="What a plain request costs">
                <p class="row">
                  ${one.example.usd === null ? html`<span class="warn">Not known: calls are kept without a price until one is set.</span>` : html`<strong class="strong">$${one.example.usd}</strong>`}
                  <span class="quiet">for ${one.example.about}</span>
                </p>
                <${Facts}
                  of=${one.example.lines.map((line) => [`${count(line.count)} ${line.unit}`, `$${line.usd}`] as const)}
                />
              <//>
              <${Box} title="Facts, and who says so" flush>
                <${Table}
                  label="Facts"
                  rows=${one.facts}
                  id=${(row: Fact) => row.field}
                  columns=${FACTS}
                />
              <//>
            </div>`,
        )}
        ${value.near.length > 0 && html`<p class="quiet">Near it: ${value.near.map((name) => html`<a key=${name} href=${addressOf("/models", { model: name })}>${name}</a> `)}</p>`}`}<//
    >
    <${Shown} of=${ways}
      >${(value: Ways) =>
        html`<${Box} title="What becomes of data, way by way" flush>
          <${Table}
            label="Ways"
            rows=${value.ways}
            id=${(row: Way) => `${row.id} ${row.credential} ${row.protocol}`}
            columns=${WAYS}
          />
        <//>`}<//
    >
    <${SameAs} line=${`tollgate models explain ${model}`} />
  <//>`;
}

const FROM = { operator: "gateway.yaml", live: "its provider's list", shipped: "shipped" } as const;

const sourceOf = ({ from, at, credential, as }: Source): string =>
  [FROM[from], at && at.slice(0, 10), credential && `by ${credential}`, as && `as ${as}`]
    .filter(Boolean)
    .join(", ");

function valueOf({ field, value }: Fact) {
  const price = value as Partial<Price> | null;
  if (field === "price" && price?.lines)
    return price.lines.map(
      ({ unit, usd, per, variant }, at) =>
        html`<div key=${at}>
          ${`$${usd} for ${per === 1 ? "each" : "a million"} ${unit.replaceAll("_", " ")}`}${variant && ` (${said(variant)})`}
        </div>`,
    );
  if (typeof value === "boolean") return value ? "yes" : "no";
  return said(value);
}

const said = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(said).join(", ")
    : typeof value === "object" && value !== null
      ? Object.entries(value)
          .map(([name, each]) => `${name}: ${said(each)}`)
          .join("; ")
      : typeof value === "number"
        ? count(value)
        : String(value);

const FACTS = [
  {
    name: "Fact",
    head: true,
    by: (row: Fact) => row.field,
    of: (row: Fact) => row.field,
  },
  {
    name: "Value",
    of: (row: Fact) => html`<span class="break">${valueOf(row)}</span>`,
  },
  {
    name: "Source",
    by: (row: Fact) => row.source.from,
    of: (row: Fact) =>
      html`<span class="quiet" title=${row.source.at}>${sourceOf(row.source)}</span>`,
  },
];

const WAYS = [
  {
    name: "Way",
    head: true,
    of: (row: Way) =>
      html`${row.credential}
        <div class="small faint">${row.protocol ?? "its own protocol"}</div>`,
  },
  {
    name: "Service-ZDR",
    of: (row: Way) =>
      html`<${Mark} tone=${row.would.required ? "good" : ""}
        >${row.would.strict ? "strict" : row.would.required ? "required" : "no"}<//
      >`,
  },
  {
    name: "Why",
    of: (row: Way) =>
      html`<span class="small quiet"
        >${row.policy.because.join(", ") || "nothing speaks against it"}</span
      >`,
  },
  {
    name: "Said by",
    of: (row: Way) =>
      html`<span class="small faint">${row.sayings.map(({ level }) => level).join(", ")}</span>`,
  },
];
