// Names under `models:` in gateway.yaml, and the models that they lead to.
import { html } from "htm/preact";
import { Box, Mark } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { addressOf } from "../place.ts";
import { isWithin } from "../words.ts";

export interface Alias {
  readonly name: string;
  readonly pick: string;
  /** A duration, or durations by class of call. */
  readonly hedge?: string | Readonly<Record<string, string>>;
  readonly targets: readonly {
    readonly model: string;
    readonly weight?: number;
    readonly mounted: boolean;
  }[];
}

interface Retiring {
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
  models: readonly Retiring[];
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
      id=${({ name }: Alias) => name}
      columns=${columnsOf(going, names)}
      most=${10}
    />
  <//>`;
}

type Target = Alias["targets"][number];

const columnsOf = (
  going: ReadonlyMap<string, string>,
  names: ReadonlySet<string>,
): readonly Column<Alias>[] => [
  {
    name: "Alias",
    head: true,
    by: ({ name }) => name,
    of: ({ name }) =>
      name.includes("*")
        ? html`<code>${name}</code>`
        : html`<a class="nowrap" href=${addressOf("/routing", { model: name })}>${name}</a>`,
  },
  {
    name: "Leads to",
    of: ({ targets }) =>
      html`<ol class="targets">
        ${targets.map(
          (target) =>
            html`<li key=${target.model}>
              ${targets.length > 1 && html`<span class="faint">${targets.indexOf(target) + 1}</span> `}
              ${linkOf(target, names)}${weightOf(target)}${flawOf(target, going)}
            </li>`,
        )}
      </ol>`,
  },
  { name: "Order", by: ({ pick }) => pick, of: ({ pick }) => PICKS[pick] ?? pick },
  { name: "Hedging", of: ({ hedge }) => hedgeOf(hedge) },
];

const hedgeOf = (hedge: Alias["hedge"]) =>
  hedge === undefined
    ? html`<span class="faint">off</span>`
    : typeof hedge === "string"
      ? `after ${hedge}`
      : Object.entries(hedge)
          .map(([of, each]) => `${of}: after ${each}`)
          .join(", ");

const PICKS: Readonly<Record<string, string>> = {
  ordered: "in this order",
  weighted: "by weight",
  fastest: "fastest first",
  cheapest: "cheapest first",
  sticky: "the same one for the same client",
};

const linkOf = ({ model }: Target, names: ReadonlySet<string>) =>
  model.includes("*")
    ? html`<code>${model}</code>`
    : names.has(model)
      ? html`<a href=${addressOf("/models", { q: model })}>${model}</a>`
      : html`<a href=${addressOf("/models", { model })}>${model}</a>`;

const weightOf = ({ weight }: Target) =>
  weight === undefined ? null : html` <span class="small faint">weight ${weight}</span>`;

const flawOf = ({ model, mounted }: Target, going: ReadonlyMap<string, string>) =>
  mounted
    ? going.has(model) && html` <${Mark} tone="warn">retires ${going.get(model)!.slice(0, 10)}<//>`
    : html` <${Mark} tone="warn">not mounted<//>`;
