// What needs a hand: each with the page or the file that mends it.
import type { ComponentChildren } from "preact";
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { icon } from "../parts/icons.ts";
import { Box } from "../parts/plain.ts";
import { addressOf } from "../place.ts";
import type { Span } from "../span.ts";
import type { Recent, Sums } from "../shapes.ts";
import { ago, count } from "../words.ts";

interface StatusNow {
  readonly lastReload?: {
    readonly ok: boolean;
    readonly at: number;
    readonly problems: readonly unknown[];
  };
  readonly leftOut: readonly { readonly provider: string; readonly why: string }[];
  readonly lists: readonly { readonly provider: string; readonly failures?: number }[];
}

interface Todo {
  readonly id: string;
  readonly bad: boolean;
  readonly said: ComponentChildren;
}

export function NeedsAHand({
  recent,
  sums,
  span,
}: {
  recent: Recent | undefined;
  sums: Sums | undefined;
  span: Span;
}) {
  const { value: status } = useAsk<StatusNow>("status", {}, { every: 5_000 });
  const todo = [...now(recent), ...ofStatus(status), ...ofBills(sums, span)];
  return html`<${Box} title="Needs a hand">
    ${
      todo.length === 0
        ? html`<p class="row small quiet">
            <span class="good">${icon("check")}</span>Nothing does.
          </p>`
        : html`<ul class="todo">
            ${todo.map(
              ({ id, bad, said }) =>
                html`<li key=${id}>
                  <span class=${bad ? "bad" : "warn"}>${icon("warning")}</span>
                  <div>${said}</div>
                </li>`,
            )}
          </ul>`
    }
  <//>`;
}

function now(recent: Recent | undefined): Todo[] {
  const resting = recent?.resting ?? [];
  return [
    ...(recent?.ledger.ok === false
      ? [
          {
            id: "ledger",
            bad: true,
            said: `The ledger is unavailable, and new calls are refused. ${recent.ledger.why ?? ""}`,
          },
        ]
      : []),
    ...resting.slice(0, 4).map(({ provider, credential, model, why, until, refuses }) => ({
      id: `${provider} ${credential} ${model}`,
      bad: true,
      said: html`<a href=${addressOf("/providers")}>${provider}${model ? `/${model}` : ""}</a> is
        cooling down after ${why}, until ${ago(until)};
        ${refuses ? "no request is sent" : "tried last"}.`,
    })),
    ...(resting.length > 4
      ? [{ id: "more", bad: true, said: `${resting.length - 4} more are cooling down.` }]
      : []),
  ];
}

function ofStatus(status: StatusNow | undefined): Todo[] {
  if (!status) return [];
  const { lastReload, leftOut } = status;
  return [
    ...(lastReload?.ok === false
      ? [
          {
            id: "reload",
            bad: true,
            said: html`The config was not taken ${ago(lastReload.at)}:
              <a href=${addressOf("/config")}>${count(lastReload.problems.length)} problems</a>. The
              one before goes on.`,
          },
        ]
      : []),
    ...leftOut.map(({ provider, why }) => ({
      id: `out ${provider}`,
      bad: false,
      said: html`<span class="strong">${provider}</span> is left out: ${why}.`,
    })),
  ];
}

function ofBills(sums: Sums | undefined, span: Span): Todo[] {
  const range = span.name;
  const { unpriced = 0, estimated = 0 } = sums?.total ?? {};
  return [
    ...(unpriced > 0
      ? [
          {
            id: "unpriced",
            bad: true,
            said: html`<a href=${addressOf("/usage", { by: "model", state: "unpriced", range })}
                >${count(unpriced)} calls have no price</a
              >. A price in gateway.yaml counts from then on.`,
          },
        ]
      : []),
    ...(estimated > 0
      ? [
          {
            id: "estimated",
            bad: false,
            said: html`<a href=${addressOf("/usage", { by: "model", state: "estimated", range })}
                >${count(estimated)} calls are estimated</a
              >: their providers did not say what was used.`,
          },
        ]
      : []),
  ];
}
