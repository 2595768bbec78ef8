// Names under `models:` in gateway.yaml, and the models that they map to.
import { html } from "htm/preact";
import { Box, Badge } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { buildUrl } from "../../location.ts";
import { isWithin } from "../../format.ts";

export interface Alias {
  readonly name: string;
  readonly pick: string;
  /** A duration, or durations by type of call. */
  readonly hedge?: string | Readonly<Record<string, string>>;
  readonly targets: readonly {
    readonly model: string;
    readonly weight?: number;
    readonly mounted: boolean;
  }[];
}

interface RetiringModel {
  readonly id: string;
  readonly retires?: string;
}

const SOON_DAYS = 60;

export function Aliases({
  all,
  models,
  search,
}: {
  all: readonly Alias[];
  models: readonly RetiringModel[];
  search: string;
}) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all.filter(({ name, targets }) =>
    words.every((word) =>
      [name, ...targets.map(({ model }) => model)].some((each) =>
        each.toLowerCase().includes(word),
      ),
    ),
  );
  if (rows.length === 0) return null;
  const going = new Map(
    models
      .filter(({ retires }) => retires !== undefined && isWithin(Date.parse(retires), SOON_DAYS))
      .map(({ id, retires }) => [id, retires!]),
  );
  const names = new Set(all.map(({ name }) => name));
  return html`<${Box} title="Aliases" flush>
    <${Table}
      label="Aliases"
      rows=${rows}
      rowId=${({ name }: Alias) => name}
      columns=${aliasColumns(going, names)}
      initialRows=${10}
    />
  <//>`;
}

type Target = Alias["targets"][number];

const aliasColumns = (
  going: ReadonlyMap<string, string>,
  names: ReadonlySet<string>,
): readonly Column<Alias>[] => [
  {
    name: "Alias",
    isRowHeader: true,
    sortKey: ({ name }) => name,
    render: ({ name }) =>
      name.includes("*")
        ? html`<code>${name}</code>`
        : html`<a class="nowrap" href=${buildUrl("/routing", { model: name })}>${name}</a>`,
  },
  {
    name: "Models",
    render: ({ targets }) =>
      html`<ol class="targets">
        ${targets.map(
          (target) =>
            html`<li key=${target.model}>
              ${targets.length > 1 && html`<span class="faint">${targets.indexOf(target) + 1}</span> `}
              ${modelLink(target, names)}${renderWeight(target)}${targetWarning(target, going)}
            </li>`,
        )}
      </ol>`,
  },
  {
    name: "Order",
    sortKey: ({ pick }) => pick,
    render: ({ pick }) => STRATEGY_LABELS[pick] ?? pick,
  },
  { name: "Hedging", render: ({ hedge }) => hedgeOf(hedge) },
];

const hedgeOf = (hedge: Alias["hedge"]) =>
  hedge === undefined
    ? html`<span class="faint">off</span>`
    : typeof hedge === "string"
      ? `after ${hedge}`
      : Object.entries(hedge)
          .map(([of, each]) => `${of}: after ${each}`)
          .join(", ");

const STRATEGY_LABELS: Readonly<Record<string, string>> = {
  ordered: "in the listed order",
  weighted: "by weight",
  fastest: "fastest first",
  cheapest: "cheapest first",
  sticky: "the same target for the same client",
};

const modelLink = ({ model }: Target, names: ReadonlySet<string>) =>
  model.includes("*")
    ? html`<code>${model}</code>`
    : names.has(model)
      ? html`<a href=${buildUrl("/models", { q: model })}>${model}</a>`
      : html`<a href=${buildUrl("/models", { model })}>${model}</a>`;

const renderWeight = ({ weight }: Target) =>
  weight === undefined ? null : html` <span class="small faint">weight ${weight}</span>`;

const targetWarning = ({ model, mounted }: Target, going: ReadonlyMap<string, string>) =>
  mounted
    ? going.has(model) && html` <${Badge} tone="warn">retires ${going.get(model)!.slice(0, 10)}<//>`
    : html` <${Badge} tone="warn">not mounted<//>`;
