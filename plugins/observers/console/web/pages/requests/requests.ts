// Requests page: a live list, a search of the whole ledger, and the details of one request. The
// page contains no prompts or responses, because the gateway does not store them.
import { useMemo, useState } from "preact/hooks";
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Select, TextField } from "../../parts/fields.ts";
import { icon } from "../../parts/icons.ts";
import {
  Box,
  Badge,
  NoteBox,
  CommandLineHint,
  ErrorNote,
  LoadingPlaceholder,
} from "../../parts/basics.ts";
import { buildUrl, navigate, useLocation, useQueryParam } from "../../location.ts";
import { CustomTimeRange, parseCustomRange, parseTimeRange } from "../../time-range.ts";
import { toLocalField } from "../../dates.ts";
import type { ObservedRequest } from "../../api-types.ts";
import { formatAgo, formatCount, formatDateTime, readerZone } from "../../format.ts";
import { RequestDetail } from "./request.ts";
import { OUTCOMES } from "../requests-outcomes.ts";
import { useFollowedRequests } from "./requests-follow.ts";
import { type SearchedRequests, useSearchedRequests } from "./requests-search.ts";
import { RequestTable } from "./requests-table.ts";

/** Time ranges. "" is the live list. The other ranges search the ledger. */
const RANGE_CHOICES = [
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
  ["refused", "Rejected"],
  ["failed", "Failed"],
  ["canceled", "Canceled"],
] as const;

interface Filters {
  readonly [name: string]: string;
}

export function RequestsPage({ rest }: { rest: string }) {
  const { query } = useLocation();
  const [range, setRange] = useQueryParam("range");
  const [status] = useQueryParam("status");
  const [account] = useQueryParam("account");
  const [key] = useQueryParam("key");
  const [model] = useQueryParam("model");
  const [provider] = useQueryParam("provider");
  const [label] = useQueryParam("label");
  const [outcome] = useQueryParam("outcome");
  const filters = useMemo(
    () => withoutEmpty({ status, account, key, model }),
    [status, account, key, model],
  );
  const search = useMemo(
    () =>
      range === ""
        ? undefined
        : { ...filters, ...withoutEmpty({ provider, label, outcome }), ...parseRange(range) },
    [filters, provider, label, outcome, range],
  );
  const keep = Object.fromEntries(query);
  const open = (one: string) => navigate(buildUrl(`/requests/${encodeURIComponent(one)}`, keep));
  const shown = { open, chosen: rest };
  return html`
    <${FindById} open=${open} />
    <${FilterBar} range=${range} setRange=${setRange} />
    ${range === "" ? html`<${LiveRequests} ...${shown} filters=${filters} />` : html`<${LedgerRequests} ...${shown} input=${search} />`}
    ${rest && html`<${RequestDetail} key=${rest} id=${decodeURIComponent(rest)} close=${() => navigate(buildUrl("/requests", keep))} />`}
  `;
}

const withoutEmpty = (all: Filters): Filters =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value));

function parseRange(range: string): { readonly from?: number; readonly to?: number } {
  if (range === "all") return {};
  const { name, from, to } = parseTimeRange(range, Date.now());
  // Relative ranges and today have no end.
  return name.includes("_") || name === "yesterday" ? { from, to } : { from };
}

function FindById({ open }: { open: (id: string) => void }) {
  const [id, setId] = useState("");
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    if (id.trim()) open(id.trim());
  };
  return html`<form class="row filters" onSubmit=${find} role="search">
    <${TextField}
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
  const custom = parseCustomRange(range, readerZone());
  const choose = (word: string) => {
    const now = Date.now();
    const of = (at: number) => toLocalField(at, readerZone());
    setRange(word === "custom" ? `${of(now - 86_400_000)}_${of(now)}` : word);
  };
  return html`<div class="filters even">
    <${Select}
      name="Time"
      value=${custom ? "custom" : range}
      set=${choose}
      options=${RANGE_CHOICES}
    />
    ${custom && html`<${CustomTimeRange} word=${range} set=${setRange} />`}
    <${Filter} word="status" name="Status" of=${STATUSES} />
    <${Filter} word="account" name="Account" />
    <${Filter} word="key" name="Key" />
    <${Filter} word="model" name="Model" hint="any, such as openai/*" />
    ${range !== "" && html`<${Filter} word="outcome" name="Outcome of a call" of=${OUTCOMES} /><${Filter} word="provider" name="Provider" /><${Filter} word="label" name="Label" hint="any, such as team=web" />`}
  </div>`;
}

/** A filter that is stored as a URL parameter. */
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
  const [value, set] = useQueryParam(word);
  return of
    ? html`<${Select} name=${name} value=${value} set=${set} options=${of} />`
    : html`<${TypedFilter} name=${name} value=${value} set=${set} placeholder=${hint} />`;
}

/**
 * A text filter. The value is applied on Enter or when the field loses focus, because a search per
 * keystroke would be too slow.
 */
function TypedFilter(of: {
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
    <${TextField}
      name=${of.name}
      value=${typed ?? of.value}
      set=${type}
      placeholder=${of.placeholder}
    />
  </form>`;
}

interface RequestListProps {
  readonly open: (id: string) => void;
  readonly chosen: string;
}

/** Requests in flight, oldest first. */
interface InFlightResponse {
  readonly items: readonly (Pick<
    ObservedRequest,
    | "id"
    | "frontend"
    | "action"
    | "model"
    | "stream"
    | "key"
    | "keyName"
    | "account"
    | "privacy"
    | "phase"
    | "provider"
  > & { readonly startedAt: number; readonly elapsedMs: number })[];
  readonly total: number;
}

function LiveRequests({ open, chosen, filters }: RequestListProps & { filters: Filters }) {
  const [live, pause] = useState(true);
  const follow = useFollowedRequests(filters, live);
  const now = useQuery<InFlightResponse>("requests.live", { limit: 50 }, { intervalMs: 2_000 });
  const filtered = Object.keys(filters).length > 0;
  const items = useMemo(
    () =>
      follow.items && [
        ...(filtered ? [] : filterInFlight(now.value, follow.items)),
        ...follow.items,
      ],
    [follow.items, now.value, filtered],
  );
  const nothing = [
    filtered ? "No request in the history matches." : "No request has ended yet.",
    follow.since > 0 &&
      `The request history starts ${formatAgo(follow.since)}. Choose a time range to search the ledger.`,
  ];
  const { key, model, status } = filters;
  const line = [
    "tollgate tail",
    ...(key ? [`--key ${key}`] : []),
    ...(model ? [`--model ${model}`] : []),
    ...(status === "failed" ? ["--failed"] : []),
  ].join(" ");
  return html`
    ${follow.problem && html`<${ErrorNote} problem=${follow.problem} />`}
    ${follow.missed > 0 && html`<${NoteBox} tone="warn"><p>${formatCount(follow.missed)} requests ended faster than this page could load them, and are missing from the list.</p><//>`}
    <${Box}
      title="Latest requests"
      flush=${true}
      actions=${html`<${InFlightMark} all=${now.value?.total ?? 0} live=${live} pause=${pause} />`}
      >${items ? html`<${RequestTable} items=${items} open=${open} chosen=${chosen} nothing=${nothing.filter(Boolean).join(" ")} />` : html`<${LoadingPlaceholder} />`}<//
    >
    <${CommandLineHint} line=${line} />
  `;
}

/**
 * Returns requests in flight, newest first like completed requests. Requests that are already in
 * the completed list are removed.
 */
function filterInFlight(
  now: InFlightResponse | undefined,
  over: readonly ObservedRequest[],
): ObservedRequest[] {
  const ended = new Set(over.map(({ id }) => id));
  const rows = (now?.items ?? []).filter(({ id }) => !ended.has(id));
  return rows.toReversed().map(({ startedAt, elapsedMs, ...rest }) => ({
    ...rest,
    at: startedAt,
    ms: elapsedMs,
    status: 0,
  }));
}

const InFlightMark = ({
  all,
  live,
  pause,
}: {
  all: number;
  live: boolean;
  pause: (to: boolean) => void;
}) =>
  html`<span class="row"
    ><${Badge} tone=${all ? "accent" : ""}>${all} in flight<//>
    <button
      type="button"
      class="button small"
      aria-pressed=${live ? "false" : "true"}
      onClick=${() => pause(!live)}
    >
      ${icon(live ? "stop" : "play")}${live ? "Pause" : "Follow"}
    </button></span
  >`;

function LedgerRequests({
  open,
  chosen,
  input,
}: RequestListProps & { input: Readonly<Record<string, unknown>> | undefined }) {
  const found = useSearchedRequests(input);
  return html`
    ${found.problem && html`<${ErrorNote} problem=${found.problem} />`}
    <${Box} title="Requests in the ledger" flush=${true}
      >${
        found.items
          ? html`<${RequestTable}
              items=${found.items}
              open=${open}
              chosen=${chosen}
              nothing=${found.isSearching ? "Searching…" : found.hasMore ? "Nothing found so far." : "No request in the ledger matches."}
            />`
          : html`<${LoadingPlaceholder} />`
      }
      ${found.items && html`<${SearchProgress} of=${found} />`}<//
    >
    <p class="small faint">
      The ledger has requests that were sent to a provider. The live list also has recent requests
      that were rejected before that. The ledger stores the outcome of each call, not the HTTP
      status of the response. The number next to an outcome is the status that a client gets if the
      last call ends so before the response begins.
    </p>
  `;
}

const searchProgress = ({
  items,
  hasMore,
  isSearching,
  searchedBackTo = Date.now(),
}: SearchedRequests): string =>
  `${formatCount(items?.length ?? 0)} found. ${hasMore || isSearching ? `Searched back to ${formatDateTime(searchedBackTo)}.` : "The whole time range was searched."}`;

const SearchProgress = ({ of }: { of: SearchedRequests }) =>
  html`<div class="in row small" aria-live="polite">
    <span class="grow quiet">${searchProgress(of)}</span>
    ${of.isSearching ? html`<span class="faint">Searching…</span>` : of.hasMore && html`<button type="button" class="button small" onClick=${of.searchFurther}>Search further back</button>`}
  </div>`;
