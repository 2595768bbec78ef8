// List of problems that need attention, each with a link to the page that fixes it.
import type { ComponentChildren } from "preact";
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { icon } from "../../parts/icons.ts";
import { Box, QueryResult, Code } from "../../parts/basics.ts";
import { buildUrl } from "../../location.ts";
import type { TimeRange } from "../../time-range.ts";
import type { UsageReport } from "../../api-types.ts";
import { formatAgo, formatCount, formatDay, formatDateTime } from "../../format.ts";
import { amountOf } from "../../limits.ts";

type Item = { readonly severity: "bad" | "warn" } & (
  | { readonly kind: "ledger"; readonly reason: string }
  | {
      readonly kind: "reload";
      readonly at: number;
      readonly problems: number;
      readonly first?: string;
    }
  | { readonly kind: "certificate"; readonly listener: string; readonly expiresAt: number }
  | {
      readonly kind: "cooldown";
      readonly provider: string;
      readonly credential: string;
      readonly model?: string;
      readonly reason: string;
      readonly until: number;
      readonly rejectsRequests?: boolean;
    }
  | {
      readonly kind: "budget";
      readonly subject: "key" | "account";
      readonly id: string;
      readonly name?: string;
      readonly limit: string;
      readonly unit: string;
      readonly max: string | number;
      readonly used: string | number;
      readonly resetsAt: number;
    }
  | {
      readonly kind: "retirement";
      readonly model: string;
      readonly date: number;
      readonly names: readonly string[];
    }
  | {
      readonly kind: "plugin";
      readonly plugin: string;
      readonly hook: string;
      readonly reason: string;
      readonly until: number;
    }
  | {
      readonly kind: "unreachable";
      readonly plugin: string;
      readonly since: number;
      readonly reason: string;
      readonly requests: "rejected" | "continued";
    }
  | { readonly kind: "list"; readonly provider: string; readonly reason: string }
  | { readonly kind: "prices"; readonly held: number; readonly reason?: string }
  | { readonly kind: "unmounted"; readonly provider: string; readonly reason: string }
);
type ItemOf<K extends Item["kind"]> = Extract<Item, { kind: K }>;

interface AttentionList {
  readonly items: readonly Item[];
  readonly omitted: number;
  readonly uncheckedLimits: number;
}

/** A time after the end of every window, used for limits that never reset. */
const NEVER = 8e15;

const ITEM_TEXTS: { readonly [K in Item["kind"]]: (item: ItemOf<K>) => ComponentChildren } = {
  ledger: ({ reason }) => [
    link("/ledger", {}, "The ledger is unavailable"),
    `, and new calls are rejected. ${reason}`,
  ],
  reload: ({ at, problems, first }) => [
    link("/config", { view: "check" }, "The last reload failed"),
    ` ${formatAgo(at)}. The previous config stays in use.`,
    first &&
      html`<div class="quiet break">
        ${first}${problems > 1 && ` (and ${formatCount(problems - 1)} more)`}
      </div>`,
  ],
  certificate: ({ listener, expiresAt }) => [
    link("/config", { q: listener }, `The certificate of ${listener}`),
    withDate(expiresAt, expiresAt < Date.now() ? " expired " : " expires "),
    ".",
  ],
  cooldown: ({ provider, credential, model, reason, until, rejectsRequests }) => [
    link("/providers", { provider }, `${provider}${model ? `/${model}` : ""}`),
    ` is in cooldown${credential === "default" ? "" : ` (${credential})`} after ${spaced(reason)}. `,
    until > Date.now()
      ? `The cooldown ends ${formatAgo(until)}; until then `
      : "Until it responds again, ",
    rejectsRequests ? "no request is sent." : "it is tried last.",
  ],
  budget: ({ subject, id, name, limit, unit, used, max, resetsAt }) => [
    link("/keys", { [subject]: id }, `${subject === "key" ? "Key" : "Account"} ${name ?? id}`),
    ` has used ${percent(used, max)} of ${limit}. `,
    html`<span class="quiet" title=${resetsAt < NEVER ? formatDateTime(resetsAt) : ""}
      >${amountOf(unit, used)} used${resetsAt < NEVER && `, resets ${formatAgo(resetsAt)}`}.</span
    >`,
  ],
  retirement: ({ model, date, names }) => [
    link("/models", { model }, model),
    date < Date.now() ? " was retired " : " retires ",
    `on ${formatDay(date)} (${formatAgo(date)}).`,
    names.length > 0 &&
      html`<span class="quiet"
        >${` ${names.slice(0, 3).join(", ")} ${names.length === 1 ? "leads" : "lead"} to it.`}</span
      >`,
  ],
  plugin: ({ plugin, hook, reason, until }) => [
    link("/config", { q: plugin }, plugin),
    ` failed repeatedly in its ${hook} hook (${reason}) and is skipped. The next try is ${formatAgo(until)}.`,
  ],
  unreachable: ({ plugin, since, reason, requests }) => [
    link("/config", { q: plugin }, plugin),
    ` has been unreachable since ${formatDateTime(since)}. `,
    requests === "rejected"
      ? "Requests that pass through it fail. "
      : "Requests continue without it. ",
    html`<span class="quiet break">${reason}</span>`,
  ],
  list: ({ provider, reason }) => [
    "The model list of ",
    link("/providers", { provider }, provider),
    " cannot be read. ",
    html`<span class="quiet break">${reason}</span>`,
  ],
  prices: ({ held, reason }) => [
    link("/models", {}, "Price feed"),
    held > 0 && `: ${held} ${held === 1 ? "price waits" : "prices wait"} for approval. `,
    held > 0 && html`<span class="quiet">Run tollgate models diff.</span>`,
    reason !== undefined && html`<span class="quiet break"> ${reason}</span>`,
  ],
  unmounted: ({ provider, reason }) => [
    link("/providers", {}, provider),
    ` is not mounted: ${reason}.`,
  ],
};

/** Text is concatenated in code, because templates drop the space before a line break. */
const link = (path: string, set: Readonly<Record<string, string>>, text: string) =>
  html`<a href=${buildUrl(path, set)}>${text}</a>`;
const withDate = (at: number, prefix: string) =>
  html`<span title=${formatDateTime(at)}>${`${prefix}${formatAgo(at)}`}</span>`;

const spaced = (kind: string): string => kind.replaceAll("_", " ");
const percent = (used: string | number, max: string | number): string =>
  `${Math.floor((Number(used) / Math.max(1, Number(max))) * 100)}%`;

const idOf = (item: Item): string =>
  JSON.stringify(item, (name, value: unknown) =>
    ["until", "retryAt", "used", "held", "resetsAt", "at"].includes(name) ? undefined : value,
  );

export function NeedsAttention({ sums, span }: { sums: UsageReport | undefined; span: TimeRange }) {
  const found = useQuery<AttentionList>("attention", {}, { intervalMs: 5_000 });
  return html`<${Box} title="Needs attention"
    ><${QueryResult} of=${found}
      >${({ items, omitted, uncheckedLimits }: AttentionList) =>
        html`<${AttentionItems}
            items=${items}
            bills=${billItems(sums, span)}
          />${omitted > 0 && html`<p class="small quiet">And ${formatCount(omitted)} more.</p>`}${uncheckedLimits > 0 && html`<p class="small quiet">${formatCount(uncheckedLimits)} limits of keys were not checked, because there are too many.</p>`}`}<//
    ><//
  >`;
}

/** Number of items to show first. A native disclosure element opens the rest. */
const INITIAL_ITEMS = 6;

function AttentionItems({
  items,
  bills,
}: {
  items: readonly Item[];
  bills: readonly (readonly [id: string, bad: boolean, content: ComponentChildren])[];
}) {
  const all = [
    ...items.map((item) => [idOf(item), item.severity === "bad", renderItem(item)] as const),
    ...bills,
  ];
  const line = ([id, bad, content]: (typeof all)[number]) =>
    html`<li key=${id}>
      <span class=${bad ? "bad" : "warn"} title=${bad ? "urgent" : "soon"}>${icon("warning")}</span>
      <div>${content}</div>
    </li>`;
  if (all.length === 0)
    return html`<p class="row small quiet">
      <span class="good">${icon("check")}</span>Nothing needs attention.
    </p>`;
  return html`<ul class="todo">
      ${all.slice(0, INITIAL_ITEMS).map(line)}
    </ul>
    ${
      all.length > INITIAL_ITEMS &&
      html`<details class="small">
        <summary>${formatCount(all.length - INITIAL_ITEMS)} more</summary>
        <ul class="todo">
          ${all.slice(INITIAL_ITEMS).map(line)}
        </ul>
      </details>`
    }`;
}

const renderItem = (item: Item): ComponentChildren =>
  (ITEM_TEXTS[item.kind] as ((item: Item) => ComponentChildren) | undefined)?.(item) ?? item.kind;

function billItems(sums: UsageReport | undefined, span: TimeRange) {
  const range = span.name;
  const { unpriced = 0, estimated = 0 } = sums?.total ?? {};
  const usage = (state: string, text: string) =>
    link("/usage", { by: "model", state, range }, text);
  return [
    ...(unpriced > 0
      ? [
          [
            "unpriced",
            true,
            [
              usage("unpriced", `${formatCount(unpriced)} calls have no price`),
              ". Set one in gateway.yaml; it applies to later calls.",
            ],
          ] as const,
        ]
      : []),
    ...(estimated > 0
      ? [
          [
            "estimated",
            false,
            [
              usage("estimated", `${formatCount(estimated)} calls are estimated`),
              ": the providers reported no usage.",
            ],
          ] as const,
        ]
      : []),
  ];
}

// The overview of a gateway that has received no requests yet: the next steps.

export function GettingStarted() {
  const { value } = useQuery<{ url: string }>("status");
  const url = value?.url ?? "http://127.0.0.1:8787";
  const curl = [
    `curl ${url}/v1/chat/completions \\`,
    `  -H 'authorization: Bearer <key>' -H 'content-type: application/json' \\`,
    `  -d '{"model":"demo/echo","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join("\n");
  return html`<div class="grid">
    <${Box} title="Send a first request">
      <div class="stack">
        <p class="quiet">
          No request has been sent yet. Any OpenAI or Anthropic client works with this gateway: give
          it this address and a key.
        </p>
        <${Code} label="First request" text=${curl} />
      </div>
    <//>
    <${Box} title="Explore">
      <div class="stack tight">
        <p>
          <a href=${buildUrl("/playground")}>Call a model in the playground</a>
          <span class="quiet">with one of your keys.</span>
        </p>
        <p>
          <a href=${buildUrl("/requests")}>Watch requests</a>
          <span class="quiet">as they complete.</span>
        </p>
        <p>
          <a href=${buildUrl("/usage")}>See usage</a>
          <span class="quiet">by key, model, or label.</span>
        </p>
      </div>
    <//>
  </div>`;
}
