// Routing page: the candidates for a request, and why each is or is not called first.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useQuery } from "../use-query.ts";
import { Select, TextField } from "../parts/fields.ts";
import {
  Box,
  EmptyState,
  FactList,
  Badge,
  NoteBox,
  CommandLineHint,
  QueryResult,
} from "../parts/basics.ts";
import { Table } from "../parts/table.ts";
import { buildUrl, useQueryParam } from "../location.ts";
import { formatAgo, formatDateTime, formatDuration } from "../format.ts";

interface CandidateCooldown {
  readonly state: string;
  readonly reason: string;
  readonly until: number;
  readonly rejectsRequests?: boolean;
  /** If set, the cooldown affects only requests with these keys. */
  readonly keys?: readonly string[];
}
interface Candidate {
  readonly id: string;
  readonly credential: string;
  readonly protocol: string | null;
  readonly mode: "passthrough" | "translated";
  readonly translationReason?: string;
  /** Position of the candidate in the gateway's order of calls. */
  readonly callOrder?: "first" | "next" | "last" | "not_called";
  /** Whether a cooldown moves the candidate behind the others. */
  readonly isCoolingDown?: boolean;
  readonly cooldown?: CandidateCooldown;
  readonly excluded?: { readonly by: string; readonly code: string; readonly message: string };
}
interface RoutingExplanation {
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
  readonly hedgeDelays?: readonly { readonly class: string; readonly afterMs: number }[];
  readonly sockets?: readonly {
    readonly type: "requests" | "relay";
    readonly paths: readonly string[];
  }[];
  readonly notes?: readonly string[];
}
interface PolicyExplanation {
  readonly routes: readonly {
    readonly id: string;
    readonly credential: string;
    readonly protocol: string | null;
    readonly policy: { readonly reasons: readonly string[] };
    readonly satisfies: { readonly required: boolean; readonly strict: boolean };
  }[];
  readonly blockedBy: readonly string[];
}

/** Maximum number of suggestions while the reader types. */
const MAX_SUGGESTIONS = 500;

export function RoutingPage() {
  const [model, setModel] = useQueryParam("model");
  const [frontend, setFrontend] = useQueryParam("frontend");
  const [key, setKey] = useQueryParam("key");
  const [zdr, setZdr] = useQueryParam("zdr");
  const [typed, type] = useState(model);
  const [typedKey, typeKey] = useState(key);
  const models = useQuery<{ models: readonly { id: string }[] }>("models.list");
  const status = useQuery<{ frontends: readonly { name: string }[] }>("status");
  const frontends = (status.value?.frontends ?? []).map(({ name }) => name);
  const names = (models.value?.models ?? []).slice(0, MAX_SUGGESTIONS).map(({ id }) => id);
  const submit = (event: Event) => {
    event.preventDefault();
    setModel(typed.trim());
    setKey(typedKey.trim());
  };
  return html` <${Box}>
      <form class="filters" onSubmit=${submit}>
        <${TextField}
          name="Model name that the client requests"
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
          options=${[["", "the best match"], ...frontends]}
        />
        <${TextField}
          name="Key"
          value=${typedKey}
          set=${typeKey}
          placeholder="any key: ID or name"
        />
        <${Select}
          name="Service-ZDR"
          value=${zdr}
          set=${setZdr}
          options=${[["", "off"], "required", "strict"]}
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
            ><${EmptyState} of="routing"
              ><p>
                Shows which candidates a request would call, in which order, and why others are
                excluded. No request is sent.
              </p>
              ${names[0] && html`<a class="button" href=${buildUrl("/routing", { model: names[0] })}>Explain ${names[0]}</a>`}<//
            ><//
          >`
    }`;
}

/** The simulated request. All fields except the model may be empty. */
interface ExplainInput {
  readonly model: string;
  readonly frontend: string;
  readonly key: string;
  readonly zdr: string;
}

function Explanation({ of }: { of: ExplainInput }) {
  const { model, frontend, key, zdr } = of;
  const answer = useQuery<RoutingExplanation>("explain", {
    model,
    ...(frontend && { frontend }),
    ...(key && { key }),
    ...(zdr && { privacy: zdr }),
  });
  const ways = useQuery<PolicyExplanation>("policy.explain", { model });
  return html`<${QueryResult} of=${answer}
    >${(value: RoutingExplanation) => renderExplanation(value, ways.value, of)}<//
  >`;
}

function renderExplanation(
  value: RoutingExplanation,
  ways: PolicyExplanation | undefined,
  { key, zdr }: ExplainInput,
) {
  const { candidates, hooks, timeouts, hedgeDelays = [], sockets = [], notes = [] } = value;
  const first = candidates.find(({ callOrder }) => callOrder === "first");
  const wayOf = (one: Candidate) =>
    ways?.routes.find(
      (way) =>
        way.id === one.id && way.credential === one.credential && way.protocol === one.protocol,
    );
  return html` <${NoteBox} tone=${first && !isCoolingDown(first) ? "good" : "warn"}
      >${
        first
          ? html`<p>
                <strong class="strong">${first.id}</strong> is called first, with the credential
                ${` ${first.credential}, `}${first.mode === "passthrough" ? "byte for byte as the client wrote it" : `translated${first.translationReason ? `: ${first.translationReason}` : ""}`}.
              </p>
              ${isCoolingDown(first) && html`<p>This and all other candidates are in cooldown.</p>`}
              ${skippedNotes(candidates, first)}`
          : html`<p>No candidate is called. The table shows the reason for each.</p>`
      }<//
    >
    <${Candidates} value=${value} wayOf=${wayOf} />
    <div class="grid">
      <${Box} title="Hooks"
        ><${FactList}
          of=${Object.entries(hooks)
            .filter(([, list]) => list.length > 0)
            .map(([hook, list]) => [hook, list.join(", ")] as const)}
        />
        ${Object.values(hooks).every((list) => list.length === 0) && html`<p class="quiet">No middleware has a hook for this request.</p>`}<//
      >
      <${Box} title="Timeouts"
        ><${FactList}
          of=${[
            ["Connect", formatDuration(timeouts.connectMs)],
            ["First byte", formatDuration(timeouts.firstByteMs)],
            ["Idle", formatDuration(timeouts.idleMs)],
            ["Total", formatDuration(timeouts.totalMs)],
            ...hedgeDelays.map(
              (each) => [`Hedge, ${each.class}`, `after ${formatDuration(each.afterMs)}`] as const,
            ),
          ]}
      /><//>
      ${
        sockets.length > 0 &&
        html`<${Box} title="WebSocket"
          ><${FactList}
            of=${sockets.map(
              ({ type, paths }) =>
                [
                  type === "relay" ? "Relay to the first candidate" : "Each message is a request",
                  paths.join(", "),
                ] as const,
            )}
        /><//>`
      }
    </div>
    ${
      notes.length > 0 &&
      html`<${Box} title="Notes"
        ><ul class="stack tight">
          ${notes.map((note) => html`<li key=${note}>${note}</li>`)}
        </ul><//
      >`
    }
    <${CommandLineHint}
      line=${[
        `tollgate explain ${value.model} -f ${value.frontend}`,
        ...(key ? [`--key ${key}`] : []),
        ...(zdr === "strict" ? ["--strict"] : zdr ? ["--zdr"] : []),
      ].join(" ")}
    />`;
}

type FindPolicyPath = (one: Candidate) => PolicyExplanation["routes"][number] | undefined;

const Candidates = ({ value, wayOf }: { value: RoutingExplanation; wayOf: FindPolicyPath }) =>
  html`<${Box} title=${`Candidates for ${value.model} at ${value.frontend}`} flush>
    <${Table}
      label="Candidates"
      rows=${value.candidates.map((one, at) => ({ ...one, at }))}
      rowId=${(row: Candidate & { at: number }) => `${row.at}`}
      columns=${[
        {
          name: "",
          render: (row: Candidate & { at: number }) => (row.excluded ? "" : `${row.at + 1}.`),
        },
        {
          name: "Model",
          isRowHeader: true,
          render: (row: Candidate) =>
            html`<a href=${buildUrl("/models", { model: row.id })}>${row.id}</a>`,
        },
        { name: "Credential", render: (row: Candidate) => row.credential },
        { name: "Status", render: renderState },
        {
          name: "Mode",
          render: (row: Candidate) =>
            html`${row.mode}${row.translationReason && html`<div class="small faint">${row.translationReason}</div>`}`,
        },
        { name: "Protocol", render: (row: Candidate) => row.protocol ?? "its own" },
        { name: "Service-ZDR", render: (row: Candidate) => renderPrivacy(wayOf(row)) },
      ]}
    />
  <//>`;

const isCoolingDown = ({ isCoolingDown = false }: Candidate): boolean => isCoolingDown;

/** Explains why candidates that the config lists earlier are not called first. */
function skippedNotes(candidates: readonly Candidate[], first: Candidate) {
  const cooling = candidates.filter((one) => one !== first && isCoolingDown(one));
  if (cooling.length === 0) return null;
  return html`<p class="quiet">
    In cooldown: ${cooling.map(({ id, credential }) => `${id} (${credential})`).join(", ")}.
  </p>`;
}

const COOLDOWN_REASONS: Readonly<Record<string, string>> = {
  credential_rejected: "the provider rejected its credential",
  retry_after: "the provider asked to wait",
  open: "its requests fail",
  half_open: "the cooldown is over, and the next request is a probe",
  recovering: "it recovered, and its share of requests grows gradually",
};

const ORDER_LABELS = {
  first: "called first",
  next: "called next",
  last: "in cooldown, called last",
  not_called: "in cooldown, not called",
} as const;

function renderState(one: Candidate) {
  const { excluded, cooldown, callOrder = "next" } = one;
  if (excluded)
    return html`<${Badge} tone="bad">excluded<//>
      <div class="small">${excluded.by}: <code>${excluded.code}</code></div>
      <div class="small faint break">${excluded.message}</div>`;
  const cooling = isCoolingDown(one);
  return html`<${Badge} tone=${cooling || cooldown ? "warn" : callOrder === "first" ? "good" : ""}
      >${cooling && callOrder === "first" ? "in cooldown, called first" : ORDER_LABELS[callOrder]}<//
    >${
      cooldown &&
      html`<div class="small faint">
        ${cooldown.keys && `for the key ${cooldown.keys.join(", ")} only: `}${COOLDOWN_REASONS[cooldown.state] ?? cooldown.state}
        (${cooldown.reason})${cooldown.until > Date.now() && html`, <span title=${formatDateTime(cooldown.until)}>ends ${formatAgo(cooldown.until)}</span>`}
      </div>`
    }`;
}

function renderPrivacy(way: PolicyExplanation["routes"][number] | undefined) {
  if (!way) return html`<span class="faint">–</span>`;
  if (way.satisfies.strict) return html`<${Badge} tone="good">strict<//>`;
  if (way.satisfies.required) return html`<${Badge} tone="good">required<//>`;
  return html`<${Badge}>not applicable<//>
    <div class="small faint break">${way.policy.reasons.join(", ")}</div>`;
}
