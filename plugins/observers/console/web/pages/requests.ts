// Requests as they end, requests of the whole ledger, and one of them in full. No word of a prompt or a response is here, for none is kept.
import { useMemo, useState } from "preact/hooks";
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { Select, Text } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Mark, NoteBox, SameAs, Trouble, Wait } from "../parts/plain.ts";
import { addressOf, go, usePlace, useWord } from "../place.ts";
import { CustomTime, customOf, spanOf } from "../span.ts";
import { localOf } from "../dates.ts";
import type { Seen } from "../shapes.ts";
import { ago, count, moment, zone } from "../words.ts";
import { Story } from "./request.ts";
import { OUTCOMES } from "./requests-outcomes.ts";
import { useFollowed } from "./requests-follow.ts";
import { type Searched, useSearched } from "./requests-search.ts";
import { Listed } from "./requests-table.ts";

/** "" is the list that follows; the others are of the ledger. */
const TIMES = [
  ["", "Live"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["all", "Whole ledger"],
  ["custom", "Custom"],
] as const;
const STATUSES = [
  ["", "All"],
  ["ok", "Succeeded"],
  ["refused", "Refused"],
  ["failed", "Failed"],
  ["canceled", "Canceled"],
] as const;

interface Filters {
  readonly [name: string]: string;
}

export function Requests({ rest }: { rest: string }) {
  const { query } = usePlace();
  const [range, setRange] = useWord("range");
  const [status] = useWord("status");
  const [account] = useWord("account");
  const [key] = useWord("key");
  const [model] = useWord("model");
  const [provider] = useWord("provider");
  const [label] = useWord("label");
  const [outcome] = useWord("outcome");
  const filters = useMemo(
    () => given({ status, account, key, model }),
    [status, account, key, model],
  );
  const search = useMemo(
    () =>
      range === ""
        ? undefined
        : { ...filters, ...given({ provider, label, outcome }), ...timesOf(range) },
    [filters, provider, label, outcome, range],
  );
  const keep = Object.fromEntries(query);
  const open = (one: string) => go(addressOf(`/requests/${encodeURIComponent(one)}`, keep));
  const shown = { open, chosen: rest };
  return html`
    <${FindById} open=${open} />
    <${FilterBar} range=${range} setRange=${setRange} />
    ${range === "" ? html`<${Live} ...${shown} filters=${filters} />` : html`<${InLedger} ...${shown} input=${search} />`}
    ${rest && html`<${Story} key=${rest} id=${decodeURIComponent(rest)} close=${() => go(addressOf("/requests", keep))} />`}
  `;
}

const given = (all: Filters): Filters =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value));

function timesOf(range: string): { readonly from?: number; readonly to?: number } {
  if (range === "all") return {};
  const { name, from, to } = spanOf(range, Date.now());
  // The last hours end now, and so does today.
  return name.includes("_") || name === "yesterday" ? { from, to } : { from };
}

function FindById({ open }: { open: (id: string) => void }) {
  const [id, setId] = useState("");
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    if (id.trim()) open(id.trim());
  };
  return html`<form class="row filters" onSubmit=${find} role="search">
    <${Text}
      wide=${true}
      name="Find by ID"
      value=${id}
      set=${setId}
      type="search"
      placeholder="x-request-id, the client's own ID, or the ID of an attempt"
    />
    <button class="button" type="submit">${icon("search")}Find</button>
  </form>`;
}

function FilterBar({ range, setRange }: { range: string; setRange: (to: string) => void }) {
  const custom = customOf(range, zone());
  const choose = (word: string) => {
    const now = Date.now();
    const of = (at: number) => localOf(at, zone());
    setRange(word === "custom" ? `${of(now - 86_400_000)}_${of(now)}` : word);
  };
  return html`<div class="filters even">
    <${Select} name="Time" value=${custom ? "custom" : range} set=${choose} of=${TIMES} />
    ${custom && html`<${CustomTime} word=${range} set=${setRange} />`}
    <${Filter} word="status" name="Status" of=${STATUSES} />
    <${Filter} word="account" name="Account" />
    <${Filter} word="key" name="Key" />
    <${Filter} word="model" name="Model" hint="any, as in openai/*" />
    ${range !== "" && html`<${Filter} word="outcome" name="Outcome of a call" of=${OUTCOMES} /><${Filter} word="provider" name="Provider" /><${Filter} word="label" name="Label" hint="any, as in team=web" />`}
  </div>`;
}

/** One word of the address. What is typed is asked for after a moment. */
function Filter({
  word,
  name,
  hint = "any",
  of,
}: {
  word: string;
  name: string;
  hint?: string;
  of?: readonly (readonly [value: string, name: string])[];
}) {
  const [value, set] = useWord(word);
  return of
    ? html`<${Select} name=${name} value=${value} set=${set} of=${of} />`
    : html`<${Typed} name=${name} value=${value} set=${set} placeholder=${hint} />`;
}

/** The value is taken on Enter or when the field is left: each key would be another search. */
function Typed(of: {
  name: string;
  value: string;
  set: (to: string) => void;
  placeholder: string;
}) {
  const [typed, type] = useState<string>();
  const take = () => {
    if (typed !== undefined) of.set(typed.trim());
    type(undefined);
  };
  return html`<form
    class="typed"
    onSubmit=${(event: SubmitEvent) => (event.preventDefault(), take())}
    onFocusOut=${take}
  >
    <${Text} name=${of.name} value=${typed ?? of.value} set=${type} placeholder=${of.placeholder} />
  </form>`;
}

interface ShownOf {
  readonly open: (id: string) => void;
  readonly chosen: string;
}

/** Requests that are not over, the oldest first. */
interface UnderWay {
  readonly items: readonly Omit<Seen, "status">[];
  readonly all: number;
}

function Live({ open, chosen, filters }: ShownOf & { filters: Filters }) {
  const [live, pause] = useState(true);
  const follow = useFollowed(filters, live);
  const now = useAsk<UnderWay>("requests.live", { limit: 50 }, { every: 2_000 });
  const filtered = Object.keys(filters).length > 0;
  const items = useMemo(
    () => follow.items && [...(filtered ? [] : notOver(now.value, follow.items)), ...follow.items],
    [follow.items, now.value, filtered],
  );
  const nothing = [
    filtered ? "No remembered request matches." : "No request has ended yet.",
    follow.since > 0 &&
      `Requests are remembered since ${ago(follow.since)}. Choose a time to search the ledger.`,
  ];
  const { key, model, status } = filters;
  const line = [
    "tollgate tail",
    ...(key ? [`--key ${key}`] : []),
    ...(model ? [`--model ${model}`] : []),
    ...(status === "failed" ? ["--failed"] : []),
  ].join(" ");
  return html`
    ${follow.problem && html`<${Trouble} problem=${follow.problem} />`}
    ${follow.missed > 0 && html`<${NoteBox} tone="warn"><p>${count(follow.missed)} requests ended faster than this page could load them, and are missing from the list.</p><//>`}
    <${Box}
      title="Latest requests"
      flush=${true}
      actions=${html`<${InFlight} all=${now.value?.all ?? 0} live=${live} pause=${pause} />`}
      >${items ? html`<${Listed} items=${items} open=${open} chosen=${chosen} nothing=${nothing.filter(Boolean).join(" ")} />` : html`<${Wait} />`}<//
    >
    <${SameAs} line=${line} />
  `;
}

/** The newest first, as those that are over; one that is over by now is in their list. */
function notOver(now: UnderWay | undefined, over: readonly Seen[]): Seen[] {
  const ended = new Set(over.map(({ id }) => id));
  const rows = (now?.items ?? []).filter(({ id }) => !ended.has(id));
  return rows.toReversed().map((each) => ({ ...each, status: 0 }));
}

const InFlight = ({
  all,
  live,
  pause,
}: {
  all: number;
  live: boolean;
  pause: (to: boolean) => void;
}) =>
  html`<span class="row"
    ><${Mark} tone=${all ? "accent" : ""}>${all} in flight<//>
    <button
      type="button"
      class="button small"
      aria-pressed=${live ? "false" : "true"}
      onClick=${() => pause(!live)}
    >
      ${icon(live ? "stop" : "play")}${live ? "Pause" : "Follow"}
    </button></span
  >`;

function InLedger({
  open,
  chosen,
  input,
}: ShownOf & { input: Readonly<Record<string, unknown>> | undefined }) {
  const found = useSearched(input);
  return html`
    ${found.problem && html`<${Trouble} problem=${found.problem} />`}
    <${Box} title="Requests in the ledger" flush=${true}
      >${
        found.items
          ? html`<${Listed}
              items=${found.items}
              open=${open}
              chosen=${chosen}
              nothing=${found.busy ? "Searching…" : found.more ? "Nothing found so far." : "No request in the ledger matches."}
            />`
          : html`<${Wait} />`
      }
      ${found.items && html`<${Reach} of=${found} />`}<//
    >
    <p class="small faint">
      The ledger has requests that were sent to a provider. Requests that were refused before that
      are in the live list for a while. The ledger stores the outcome of each call, not the HTTP
      status of the response. The number next to an outcome is the status that a client gets if the
      last call ends so before the response begins.
    </p>
  `;
}

const reachOf = ({ items, more, busy, reached = Date.now() }: Searched): string =>
  `${count(items?.length ?? 0)} found. ${more || busy ? `Searched back to ${moment(reached)}.` : "The whole time was searched."}`;

const Reach = ({ of }: { of: Searched }) =>
  html`<div class="in row small" aria-live="polite">
    <span class="grow quiet">${reachOf(of)}</span>
    ${of.busy ? html`<span class="faint">Searching…</span>` : of.more && html`<button type="button" class="button small" onClick=${of.further}>Search further back</button>`}
  </div>`;
