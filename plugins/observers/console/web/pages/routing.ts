// Routing: what a request for a model would meet, candidate by candidate, and why this one and not that one.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAsk } from "../data.ts";
import { Select, Text } from "../parts/fields.ts";
import { Box, Empty, Facts, Mark, NoteBox, SameAs, Shown } from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { addressOf, useWord } from "../place.ts";
import { ago, moment, span } from "../words.ts";

interface Cooldown {
  readonly state: string;
  readonly why: string;
  readonly until: number;
  readonly refuses?: boolean;
  /** Keys whose requests alone are affected. */
  readonly keys?: readonly string[];
}
interface Candidate {
  readonly id: string;
  readonly credential: string;
  readonly protocol: string | null;
  readonly lane: "verbatim" | "translated";
  readonly closedBy?: string;
  /** When it is called, as the gateway reckons it. */
  readonly turn?: "first" | "next" | "last" | "not_called";
  /** Whether a cooldown moves it behind the others. */
  readonly cooling?: boolean;
  readonly resting?: Cooldown;
  readonly excluded?: { readonly by: string; readonly code: string; readonly message: string };
}
interface Explained {
  readonly model: string;
  readonly frontend: string;
  readonly candidates: readonly Candidate[];
  readonly hooks: Readonly<Record<string, readonly string[]>>;
  readonly timeouts: {
    readonly connectMs: number;
    readonly firstByteMs: number;
    readonly idleMs: number;
    readonly totalMs: number;
  };
  readonly hedge?: readonly { readonly class: string; readonly afterMs: number }[];
  readonly notes?: readonly string[];
}
interface Ways {
  readonly ways: readonly {
    readonly id: string;
    readonly credential: string;
    readonly protocol: string | null;
    readonly policy: { readonly because: readonly string[] };
    readonly would: { readonly required: boolean; readonly strict: boolean };
  }[];
  readonly closed: readonly string[];
}

/** Names that are offered while one is typed. */
const OFFERED = 500;

export function Routing() {
  const [model, setModel] = useWord("model");
  const [frontend, setFrontend] = useWord("frontend");
  const [key, setKey] = useWord("key");
  const [zdr, setZdr] = useWord("zdr");
  const [typed, type] = useState(model);
  const [typedKey, typeKey] = useState(key);
  const models = useAsk<{ models: readonly { id: string }[] }>("models.list");
  const status = useAsk<{ frontends: readonly { name: string }[] }>("status");
  const frontends = (status.value?.frontends ?? []).map(({ name }) => name);
  const names = (models.value?.models ?? []).slice(0, OFFERED).map(({ id }) => id);
  const submit = (event: Event) => {
    event.preventDefault();
    setModel(typed.trim());
    setKey(typedKey.trim());
  };
  return html` <${Box}>
      <form class="filters" onSubmit=${submit}>
        <${Text}
          name="Model, as a client writes it"
          wide
          value=${typed}
          set=${type}
          options=${names}
          placeholder=${names[0] ?? "provider/model"}
        />
        <${Select}
          name="Frontend"
          value=${frontend}
          set=${setFrontend}
          of=${[["", "the best match"], ...frontends]}
        />
        <${Text} name="As key" value=${typedKey} set=${typeKey} placeholder="any key: id or name" />
        <${Select}
          name="Service-ZDR"
          value=${zdr}
          set=${setZdr}
          of=${[["", "off"], "required", "strict"]}
        />
        <button type="submit" class="button main">Explain</button>
      </form>
    <//>
    ${
      model
        ? html`<${Explanation}
            of=${{ model, frontend, key, zdr }}
            key=${[model, frontend, key, zdr].join(" ")}
          />`
        : html`<${Box}
            ><${Empty} of="routing"
              ><p>
                Which candidates a request would call, in which order, and why others are left out.
                No request is sent to find out.
              </p>
              ${names[0] && html`<a class="button" href=${addressOf("/routing", { model: names[0] })}>Explain ${names[0]}</a>`}<//
            ><//
          >`
    }`;
}

/** What is asked about; each but the model may be empty. */
interface Question {
  readonly model: string;
  readonly frontend: string;
  readonly key: string;
  readonly zdr: string;
}

function Explanation({ of }: { of: Question }) {
  const { model, frontend, key, zdr } = of;
  const answer = useAsk<Explained>("explain", {
    model,
    ...(frontend && { frontend }),
    ...(key && { key }),
    ...(zdr && { privacy: zdr }),
  });
  const ways = useAsk<Ways>("policy.explain", { model });
  return html`<${Shown} of=${answer}>${(value: Explained) => explained(value, ways.value, of)}<//>`;
}

function explained(value: Explained, ways: Ways | undefined, { key, zdr }: Question) {
  const { candidates, hooks, timeouts, hedge = [], notes = [] } = value;
  const first = candidates.find(({ turn }) => turn === "first");
  const wayOf = (one: Candidate) =>
    ways?.ways.find(
      (way) =>
        way.id === one.id && way.credential === one.credential && way.protocol === one.protocol,
    );
  return html` <${NoteBox} tone=${first && !isCooling(first) ? "good" : "warn"}
      >${
        first
          ? html`<p>
                <strong class="strong">${first.id}</strong> is called first, with the credential
                ${` ${first.credential}, `}${first.lane === "verbatim" ? "byte for byte as the client wrote it" : `translated${first.closedBy ? `, because of ${first.closedBy}` : ""}`}.
              </p>
              ${isCooling(first) && html`<p>It is in cooldown, and so is every other candidate.</p>`}
              ${passedOver(candidates, first)}`
          : html`<p>No candidate is called. The table shows the reason for each.</p>`
      }<//
    >
    <${Candidates} value=${value} wayOf=${wayOf} />
    <div class="grid">
      <${Box} title="Hooks"
        ><${Facts}
          of=${Object.entries(hooks)
            .filter(([, list]) => list.length > 0)
            .map(([hook, list]) => [hook, list.join(", ")] as const)}
        />
        ${Object.values(hooks).every((list) => list.length === 0) && html`<p class="quiet">No middleware has a hook for this request.</p>`}<//
      >
      <${Box} title="Timeouts"
        ><${Facts}
          of=${[
            ["Connect", span(timeouts.connectMs)],
            ["First byte", span(timeouts.firstByteMs)],
            ["Idle", span(timeouts.idleMs)],
            ["Total", span(timeouts.totalMs)],
            ...hedge.map(
              (each) => [`Hedge, ${each.class}`, `after ${span(each.afterMs)}`] as const,
            ),
          ]}
      /><//>
    </div>
    ${
      notes.length > 0 &&
      html`<${Box} title="Notes"
        ><ul class="stack tight">
          ${notes.map((note) => html`<li key=${note}>${note}</li>`)}
        </ul><//
      >`
    }
    <${SameAs}
      line=${[
        `tollgate explain ${value.model} -f ${value.frontend}`,
        ...(key ? [`--key ${key}`] : []),
        ...(zdr === "strict" ? ["--strict"] : zdr ? ["--zdr"] : []),
      ].join(" ")}
    />`;
}

type WayOf = (one: Candidate) => Ways["ways"][number] | undefined;

const Candidates = ({ value, wayOf }: { value: Explained; wayOf: WayOf }) =>
  html`<${Box} title=${`Candidates for ${value.model} at ${value.frontend}`} flush>
    <${Table}
      label="Candidates"
      rows=${value.candidates.map((one, at) => ({ ...one, at }))}
      id=${(row: Candidate & { at: number }) => `${row.at}`}
      columns=${[
        {
          name: "",
          of: (row: Candidate & { at: number }) => (row.excluded ? "" : `${row.at + 1}.`),
        },
        {
          name: "Model",
          head: true,
          of: (row: Candidate) =>
            html`<a href=${addressOf("/models", { model: row.id })}>${row.id}</a>`,
        },
        { name: "Credential", of: (row: Candidate) => row.credential },
        { name: "Status", of: verdict },
        {
          name: "Mode",
          of: (row: Candidate) =>
            html`${row.lane}${row.closedBy && html`<div class="small faint">${row.closedBy}</div>`}`,
        },
        { name: "Speaks", of: (row: Candidate) => row.protocol ?? "its own" },
        { name: "Service-ZDR", of: (row: Candidate) => privacy(wayOf(row)) },
      ]}
    />
  <//>`;

const isCooling = ({ cooling = false }: Candidate): boolean => cooling;

/** Why one that the config names earlier is not called first. */
function passedOver(candidates: readonly Candidate[], first: Candidate) {
  const cooling = candidates.filter((one) => one !== first && isCooling(one));
  if (cooling.length === 0) return null;
  return html`<p class="quiet">
    In cooldown: ${cooling.map(({ id, credential }) => `${id} (${credential})`).join(", ")}.
  </p>`;
}

const BECAUSE: Readonly<Record<string, string>> = {
  refused: "the provider rejected its credential",
  told: "the provider asked to wait",
  open: "its requests fail",
  half_open: "the cooldown is over, and the next request probes it",
  recovering: "it works again and gets more requests step by step",
};

const TURNS = {
  first: "called first",
  next: "called next",
  last: "in cooldown, called last",
  not_called: "in cooldown, not called",
} as const;

function verdict(one: Candidate) {
  const { excluded, resting, turn = "next" } = one;
  if (excluded)
    return html`<${Mark} tone="bad">left out<//>
      <div class="small">${excluded.by}: <code>${excluded.code}</code></div>
      <div class="small faint break">${excluded.message}</div>`;
  const cooling = isCooling(one);
  return html`<${Mark} tone=${cooling || resting ? "warn" : turn === "first" ? "good" : ""}
      >${cooling && turn === "first" ? "in cooldown, called first" : TURNS[turn]}<//
    >${
      resting &&
      html`<div class="small faint">
        ${resting.keys && `for the key ${resting.keys.join(", ")} only: `}${BECAUSE[resting.state] ?? resting.state}
        (${resting.why})${resting.until > Date.now() && html`, <span title=${moment(resting.until)}>ends ${ago(resting.until)}</span>`}
      </div>`
    }`;
}

function privacy(way: Ways["ways"][number] | undefined) {
  if (!way) return html`<span class="faint">–</span>`;
  if (way.would.strict) return html`<${Mark} tone="good">strict<//>`;
  if (way.would.required) return html`<${Mark} tone="good">required<//>`;
  return html`<${Mark}>not for it<//>
    <div class="small faint break">${way.policy.because.join(", ")}</div>`;
}
