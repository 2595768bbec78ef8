// Models: what there is, what it costs, what becomes of data there, when it goes.
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import { useAsk } from "../data.ts";
import { Select, Text } from "../parts/fields.ts";
import { Box, Empty, Figures, Mark, SameAs, Shown } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { addressOf, useWord } from "../place.ts";
import { brief, count, isWithin } from "../words.ts";
import { type Alias, Aliases } from "./models-aliases.ts";
import { ModelDetail, type Price } from "./models-detail.ts";

interface Listed {
  readonly id: string;
  readonly provider: string;
  readonly kind: string;
  readonly limits?: { readonly context?: number; readonly output?: number };
  readonly price?: Price;
  readonly retires?: string;
  readonly policy?: Policy;
}
interface Policy {
  readonly zeroRetention?: boolean;
  readonly because?: readonly string[];
  readonly [fact: string]: unknown;
}
const SOON_DAYS = 60;

export function Models() {
  const [search, setSearch] = useWord("q");
  const [provider, setProvider] = useWord("provider");
  const [kind, setKind] = useWord("kind");
  const [privacy, setPrivacy] = useWord("privacy");
  const [chosen, choose] = useWord("model");
  const answer = useAsk<{ models: readonly Listed[]; aliases: readonly Alias[] }>(
    "models.list",
    privacy ? { privacy } : {},
  );
  const all = answer.value?.models ?? [];
  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter(
      (one) =>
        (!provider || one.provider === provider) &&
        (!kind || one.kind === kind) &&
        words.every((word) => one.id.toLowerCase().includes(word)),
    );
  }, [all, search, provider, kind]);
  const names = (of: (one: Listed) => string) => [...new Set(all.map(of))].toSorted();
  return html` <${Box}>
      <div class="filters">
        <${Text}
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
          of=${[["", "all"], ...names((one) => one.provider)]}
        />
        <${Select}
          name="Kind"
          value=${kind}
          set=${setKind}
          of=${[["", "all"], ...names((one) => one.kind)]}
        />
        <${Select}
          name="Data policy"
          value=${privacy}
          set=${setPrivacy}
          of=${[
            ["", "any"],
            ["required", "Service-ZDR: required"],
            ["strict", "Service-ZDR: strict"],
          ]}
        />
      </div>
    <//>
    <${Shown} of=${answer}
      >${() => html`
        <${Summary} rows=${rows} all=${all.length} />
        <${Aliases} all=${answer.value?.aliases ?? []} models=${all} search=${search} />
        <${Box} title="Models" flush>
          <${Table}
            label="Models"
            rows=${rows}
            id=${(row: Listed) => row.id}
            open=${(row: Listed) => choose(row.id)}
            chosen=${chosen}
            empty=${html`<${Empty} of="models"><p>${all.length === 0 ? "No model is known. Mount a provider in gateway.yaml, or refresh its list." : "No model matches."}</p><//>`}
            columns=${COLUMNS}
          />
        <//>
        <p class="small faint">
          Prices are in US dollars per million tokens. Open a model for other units and the sources.
        </p>
        <${SameAs}
          line=${`tollgate models${kind ? ` --kind ${kind}` : ""}${provider ? ` --provider ${provider}` : ""}${privacy ? ` --zdr ${privacy}` : ""}`}
        />
      `}<//
    >
    ${chosen && html`<${ModelDetail} model=${chosen} key=${chosen} close=${() => choose("")} />`}`;
}

function Summary({ rows, all }: { rows: readonly Listed[]; all: number }) {
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
        value: count(rows.length),
        note: rows.length < all ? `of ${count(all)}` : "all known models",
      },
      { name: "Providers", value: count(new Set(rows.map((one) => one.provider)).size) },
      {
        name: "Without a price",
        value: count(unpriced.length),
        note: unpriced.length > 0 ? "calls to them are unpriced" : "all have one",
        tone: unpriced.length > 0 ? "warn" : "good",
      },
      {
        name: "Retire within 60 days",
        value: count(going.length),
        tone: going.length > 0 ? "warn" : "good",
        note: going[0]?.id ?? "none",
      },
    ]}
  />`;
}

/** Of a million, where that is how it is priced. */
const rate = (price: Price | undefined, unit: string): number | undefined => {
  const line = price?.lines.find((each) => each.unit === unit && each.per > 1 && !each.variant);
  return line && Number(line.usd);
};

const dollars = (of: number | undefined) =>
  of === undefined || Number.isNaN(of)
    ? html`<span class="faint">–</span>`
    : `$${of.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 4 })}`;

const COLUMNS = [
  {
    name: "Model",
    head: true,
    by: (row: Listed) => row.id,
    of: (row: Listed) =>
      html`<a href=${addressOf("/models", { model: row.id })} class="nowrap">${row.id}</a>`,
  },
  { name: "Kind", by: (row: Listed) => row.kind, of: (row: Listed) => row.kind },
  {
    name: "Context",
    number: true,
    by: (row: Listed) => row.limits?.context ?? 0,
    of: (row: Listed) =>
      row.limits?.context ? brief(row.limits.context) : html`<span class="faint">–</span>`,
  },
  {
    name: "Input",
    number: true,
    by: (row: Listed) => rate(row.price, "input") ?? -1,
    of: (row: Listed) => dollars(rate(row.price, "input")),
  },
  {
    name: "Cached",
    number: true,
    by: (row: Listed) => rate(row.price, "cache_read") ?? -1,
    of: (row: Listed) => dollars(rate(row.price, "cache_read")),
  },
  {
    name: "Output",
    number: true,
    by: (row: Listed) => rate(row.price, "output") ?? -1,
    of: (row: Listed) => dollars(rate(row.price, "output")),
  },
  {
    name: "Retires",
    by: (row: Listed) => row.retires ?? "",
    of: (row: Listed) =>
      row.retires
        ? html`<${Mark} tone=${isWithin(Date.parse(row.retires), SOON_DAYS) ? "warn" : ""}
            >${row.retires.slice(0, 10)}<//
          >`
        : html`<span class="faint">–</span>`,
  },
];
