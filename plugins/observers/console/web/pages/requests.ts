// Requests as they end, and one of them at length. No word of a prompt or an answer is here, for none is kept.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { ask, Refusal } from "../ask.ts";
import { useAsk } from "../data.ts";
import { Check, Text } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Empty, Mark, NoteBox, SameAs, Trouble, Wait } from "../parts/plain.ts";
import { Table, type Column } from "../parts/table.ts";
import { addressOf, go, usePlace, useWord } from "../place.ts";
import type { Seen } from "../shapes.ts";
import { ago, clock, moment, span, usd, usdExact } from "../words.ts";
import { Story } from "./request.ts";
import { costOf, Outcome } from "./request-words.ts";

interface PageOf {
  readonly items: readonly Seen[];
  readonly next: number;
  readonly missed: number;
  readonly since: number;
}

/** In the table at once. */
const MOST = 400;
const WAIT_MS = 20_000;

export function Requests({ rest }: { rest: string }) {
  const { query } = usePlace();
  const [key, setKey] = useWord("key");
  const [model, setModel] = useWord("model");
  const [failed, setFailed] = useWord("failed");
  const [id, setId] = useState("");
  const filter = useMemo(
    () => ({ ...(key && { key }), ...(model && { model }), ...(failed && { failed: true }) }),
    [key, model, failed],
  );
  const [live, pause] = useState(true);
  const follow = useFollowed(filter, live);
  const now = useAsk<UnderWay>("requests.live", { limit: 50 }, { every: 2_000 });
  const filtered = Object.keys(filter).length > 0;
  const items = useMemo(
    () => follow.items && [...(filtered ? [] : notOver(now.value, follow.items)), ...follow.items],
    [follow.items, now.value, filtered],
  );
  const keep = Object.fromEntries(query);
  const open = (one: string) => go(addressOf(`/requests/${encodeURIComponent(one)}`, keep));
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    if (id.trim()) open(id.trim());
  };
  const line = [
    "tollgate tail",
    ...(key ? [`--key ${key}`] : []),
    ...(model ? [`--model ${model}`] : []),
    ...(failed ? ["--failed"] : []),
  ].join(" ");
  return html`
    <div class="row filters">
      <form class="row filters grow" onSubmit=${find} role="search">
        <${Text}
          wide=${true}
          name="Find by id"
          value=${id}
          set=${setId}
          type="search"
          placeholder="x-request-id, the client's own id, or an attempt's"
        />
        <button class="button" type="submit">${icon("search")}Find</button>
      </form>
      <${Text} name="Key" value=${key} set=${setKey} placeholder="any" />
      <${Text} name="Model" value=${model} set=${setModel} placeholder="any, as in openai/*" />
      <${Check}
        name="Failed only"
        value=${failed === "yes"}
        set=${(to: boolean) => setFailed(to ? "yes" : "")}
      />
      <${InFlight} all=${now.value?.all ?? 0} live=${live} pause=${pause} />
    </div>
    ${follow.problem && html`<${Trouble} problem=${follow.problem} />`}
    ${follow.missed > 0 && html`<${NoteBox} tone="warn"><p>${follow.missed} requests came faster than this page: they are not in the list.</p><//>`}
    <${Box} flush=${true}
      >${items ? html`<${Listed} items=${items} open=${open} chosen=${rest} since=${follow.since} filtered=${filtered} />` : html`<${Wait} />`}<//
    >
    <${SameAs} line=${line} />
    ${rest && html`<${Story} key=${rest} id=${decodeURIComponent(rest)} close=${() => go(addressOf("/requests", keep))} />`}
  `;
}

/** Requests that are not over, the oldest first. */
interface UnderWay {
  readonly items: readonly Omit<Seen, "status">[];
  readonly all: number;
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
      class="button"
      aria-pressed=${live ? "false" : "true"}
      onClick=${() => pause(!live)}
    >
      ${icon(live ? "stop" : "play")}${live ? "Pause" : "Follow"}
    </button></span
  >`;

interface Followed {
  readonly items: readonly Seen[] | undefined;
  readonly missed: number;
  readonly since: number;
  readonly problem: Refusal | undefined;
}

/** The last ones, and from then on each as it ends: a question waits at the gateway until there is an answer. */
function useFollowed(filter: Readonly<Record<string, unknown>>, live: boolean): Followed {
  const [state, set] = useState<Followed>({
    items: undefined,
    missed: 0,
    since: 0,
    problem: undefined,
  });
  const next = useRef<number>(undefined);
  useEffect(() => {
    next.current = undefined;
    set({ items: undefined, missed: 0, since: 0, problem: undefined });
  }, [filter]);
  useEffect(() => {
    if (!live) return undefined;
    const over = new AbortController();
    void following(filter, next, set, over.signal);
    return () => over.abort();
  }, [filter, live]);
  return state;
}

async function following(
  filter: Readonly<Record<string, unknown>>,
  next: { current: number | undefined },
  set: (change: (before: Followed) => Followed) => void,
  over: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!over.aborted) {
    if (document.hidden) {
      await new Promise((resolve) =>
        document.addEventListener("visibilitychange", resolve, { once: true }),
      );
      continue;
    }
    const from =
      next.current === undefined
        ? { last: 2_000, limit: MOST }
        : { after: next.current, waitMs: WAIT_MS, limit: MOST };
    try {
      const page = await ask<PageOf>("requests.list", { ...filter, ...from }, over);
      failures = 0;
      next.current = page.next;
      set((before) => ({
        items: [...page.items.toReversed(), ...(before.items ?? [])].slice(0, MOST),
        missed: before.missed + (before.items ? page.missed : 0),
        since: page.since,
        problem: undefined,
      }));
    } catch (error) {
      if (over.aborted) return;
      const problem = error instanceof Refusal ? error : new Refusal(0, { message: `${error}` });
      set((before) => ({ ...before, items: before.items ?? [], problem }));
      await new Promise((resolve) =>
        setTimeout(resolve, Math.min(1_000 * 2 ** failures++, 30_000)),
      );
    }
  }
}

const COLUMNS: readonly Column<Seen>[] = [
  {
    name: "Ended",
    by: ({ at }) => at,
    of: ({ at, phase }) =>
      phase
        ? html`<span class="nowrap faint">since ${clock(at)}</span>`
        : html`<span class="nowrap" title=${moment(at)}>${clock(at)}</span>`,
  },
  { name: "Outcome", by: ({ status }) => status, of: (seen) => html`<${Outcome} of=${seen} />` },
  {
    name: "Model",
    head: true,
    by: ({ model = "" }) => model,
    of: ({ id, model, served, route, method }) =>
      html`<a
          class="cut"
          href=${addressOf(`/requests/${id}`, Object.fromEntries(new URLSearchParams(location.search)))}
          title=${model}
          >${model || `${method ?? ""} ${route ?? "at the door"}`}</a
        >${served && served !== model ? html`<span class="small faint cut">${served}</span>` : null}`,
  },
  {
    name: "Key",
    by: ({ keyName, key }) => keyName ?? key ?? "",
    of: ({ keyName, key }) =>
      html`<span class="cut">${keyName ?? key ?? html`<span class="faint">none</span>`}</span>`,
  },
  {
    name: "At",
    by: ({ frontend = "" }) => frontend,
    of: ({ frontend, stream }) =>
      html`<span class="nowrap"
        >${frontend ?? "the door"}${stream ? html` <span class="faint">stream</span>` : ""}</span
      >`,
  },
  {
    name: "Calls",
    number: true,
    by: ({ calls = [] }) => calls.length,
    of: ({ calls = [], cached }) => (cached ? "recorded" : calls.length),
  },
  {
    name: "First content",
    number: true,
    by: ({ contentMs }) => contentMs ?? -1,
    of: ({ contentMs }) => span(contentMs),
  },
  { name: "Whole", number: true, by: ({ ms }) => ms ?? -1, of: ({ ms }) => span(ms) },
  {
    name: "Cost",
    number: true,
    by: (seen) => Number(costOf(seen) ?? -1n),
    of: (seen) =>
      html`<span title=${usdExact(costOf(seen))}
        >${seen.calls?.length ? usd(costOf(seen)) : "–"}</span
      >`,
  },
];

function Listed({
  items,
  open,
  chosen,
  since,
  filtered,
}: {
  items: readonly Seen[];
  open: (id: string) => void;
  chosen: string;
  since: number;
  filtered: boolean;
}) {
  const began = useRef(Date.now());
  return html`<${Table}
    label="Requests, the newest first"
    columns=${COLUMNS}
    rows=${items}
    id=${({ id }: Seen) => id}
    open=${({ id }: Seen) => open(id)}
    chosen=${chosen}
    isNew=${({ at, phase }: Seen) => !phase && at > began.current}
    most=${100}
    empty=${html`<${Empty} of="requests"
      ><p>
        ${filtered ? "No request that is remembered fits." : "No request has ended yet."}
        ${since > 0 && `Requests are remembered since ${ago(since)}; older ones are found by their id in the ledger.`}
      </p>
      <a class="button" href=${addressOf("/playground")}>Ask a model</a><//
    >`}
  />`;
}
