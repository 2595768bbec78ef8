// One key: what it may, what is left of it, and what is done with it: changed without a new secret, moved, given another secret, ended.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { useAsk } from "../data.ts";
import { NewSecret } from "../new-secret.ts";
import { LimitBar } from "../limits.ts";
import { Select } from "../parts/fields.ts";
import { Drawer } from "../parts/over.ts";
import { Box, Facts, Mark, SameAs, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf } from "../place.ts";
import { may } from "../rights.ts";
import { ago, moment } from "../words.ts";
import { type Account, barsOf, type Key, nameOf } from "./keys-shapes.ts";
import { flawOf, Foot, Grants, saidBy, typed, type Typed } from "./keys-form.ts";

const OVERLAPS = [
  ["0", "ends at once"],
  ["3600000", "works for an hour"],
  ["86400000", "works for a day"],
  ["604800000", "works for a week"],
] as const;

export function KeyDetail({
  of,
  accounts,
  close,
  changed,
}: {
  of: Key;
  accounts: readonly Account[];
  close: () => void;
  changed: () => void;
}) {
  const [changing, change] = useState(false);
  const shown = useAsk<{ keys: readonly Key[] }>("keys.show", { id: of.id }, { every: 5_000 });
  const key = shown.value?.keys[0] ?? of;
  const again = () => (shown.again(), changed());
  const labels = Object.entries(key.labels ?? {});
  return html`<${Drawer}
    title=${nameOf(key)}
    close=${close}
    actions=${html`<${Mark} tone=${key.state === "valid" ? "good" : "bad"}>${key.state}<//>`}
  >
    <${Facts}
      of=${[
        ["Id", html`<code>${key.id}</code>`],
        [
          "Account",
          key.account
            ? html`<a href=${addressOf("/keys", { account: key.account })}>${key.account}</a>`
            : "none",
        ],
        ["May use", key.models?.join(", ") ?? "every model"],
        ["May ask at", key.frontends?.join(", ") ?? "every frontend"],
        ["Privacy", key.privacy ?? "as each request says"],
        [
          "Labels",
          labels.length > 0
            ? labels.map(
                ([name, word]) => html`<${Mark} plain=${true} key=${name}>${name}=${word}<//> `,
              )
            : undefined,
        ],
        ["Made", moment(key.created)],
        ["Ends", key.expires ? `${moment(key.expires)}, ${ago(key.expires)}` : "never"],
        [
          "Look at",
          html`<a href=${addressOf("/usage", { by: "model", key: key.id })}>what it used</a> ·
            <a href=${addressOf("/requests", { key: key.id })}>its requests</a>`,
        ],
      ]}
    />
    <${Box}
      title="What is left"
      actions=${!changing && may("keys.update") && key.state === "valid" && html`<button type="button" class="button" onClick=${() => change(true)}>Change</button>`}
    >
      ${
        changing
          ? html`<${Change} of=${key} close=${() => change(false)} changed=${again} />`
          : (key.counted ?? barsOf(key)).length === 0
            ? html`<p class="quiet">No limit of its own. What its accounts allow holds.</p>`
            : html`<div class="stack">
                ${(key.counted ?? barsOf(key)).map((limit, at) => html`<${LimitBar} limit=${limit} key=${at} />`)}
              </div>`
      }
    <//>
    ${key.state === "valid" && may("keys.rotate") && html`<${Rotate} of=${key} changed=${again} />`}
    ${key.state === "valid" && may("keys.move") && html`<${Move} of=${key} accounts=${accounts} changed=${again} />`}
    ${key.state !== "revoked" && may("keys.revoke") && html`<${End} of=${key} changed=${again} />`}
    <${SameAs} line=${`tollgate keys show ${key.id}`} />
  <//>`;
}

function Change({ of, close, changed }: { of: Key; close: () => void; changed: () => void }) {
  const [value, set] = useState<Typed>(typed(of));
  const [flaw, refuse] = useState<string>();
  const update = useAct<{ warnings?: readonly string[] }>("keys.update");
  const submit = async (event: Event) => {
    event.preventDefault();
    refuse(flawOf(value));
    if (flawOf(value)) return;
    const version = of.version === undefined ? {} : { version: of.version };
    const done = await update.run({ id: of.id, ...saidBy(value, null), ...version });
    if (!done) return;
    toast(`${nameOf(of)} is changed; its secret is the same.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    changed();
    close();
  };
  return html`<form class="form" onSubmit=${submit}>
    <${Grants} value=${value} set=${set} />
    <${Foot} flaw=${flaw} problem=${update.problem} close=${close} off=${update.busy} does="Save" />
  </form>`;
}

function Rotate({ of, changed }: { of: Key; changed: () => void }) {
  const [overlap, set] = useState("3600000");
  const rotate = useAct<{ secret: string }>("keys.rotate");
  const status = useAsk<{ url: string }>("status");
  const run = async () => {
    if (await rotate.run({ id: of.id, overlapMs: Number(overlap) })) changed();
  };
  return html`<${Box} title="Another secret">
    <div class="stack">
      <p class="small quiet">The same key to the ledger and its limits, under a new secret.</p>
      ${
        rotate.value
          ? html`<${NewSecret} secret=${rotate.value.secret} url=${status.value?.url ?? ""} />`
          : html`<div class="filters">
              <${Select} name="The old one" value=${overlap} set=${set} of=${OVERLAPS} /><button
                type="button"
                class="button"
                disabled=${rotate.busy}
                onClick=${run}
              >
                Rotate
              </button>
            </div>`
      }
      ${rotate.problem && html`<${Trouble} problem=${rotate.problem} />`}
    </div>
  <//>`;
}

function Move({
  of,
  accounts,
  changed,
}: {
  of: Key;
  accounts: readonly Account[];
  changed: () => void;
}) {
  const [to, set] = useState(of.account ?? "");
  const move = useAct<unknown>("keys.move");
  if (accounts.length === 0) return null;
  const run = async () => {
    if (!(await move.run({ id: of.id, account: to || undefined }))) return;
    toast(`${nameOf(of)} draws on ${to || "no account"} now.`);
    changed();
  };
  return html`<${Box} title="Another account">
    <div class="stack">
      <p class="small quiet">Rows that it has written stay where they were.</p>
      <div class="filters">
        <${Select}
          name="Account"
          value=${to}
          set=${set}
          of=${[["", "none"], ...accounts.map((each) => [each.id, each.path] as const)]}
        /><button
          type="button"
          class="button"
          disabled=${move.busy || to === (of.account ?? "")}
          onClick=${run}
        >
          Move
        </button>
      </div>
      ${move.problem && html`<${Trouble} problem=${move.problem} />`}
    </div>
  <//>`;
}

function End({ of, changed }: { of: Key; changed: () => void }) {
  const [sure, set] = useState(false);
  const revoke = useAct<unknown>("keys.revoke");
  const run = async () => {
    if (!(await revoke.run({ id: of.id }))) return;
    toast(`${nameOf(of)} is ended.`);
    changed();
  };
  return html`<${Box} title="End it">
    <div class="stack">
      <p class="small quiet">Its clients are refused from now on, for good. Its rows stay.</p>
      <div class="row">
        ${
          sure
            ? html`<button
                  type="button"
                  class="button danger"
                  disabled=${revoke.busy}
                  onClick=${run}
                >
                  Yes, end ${nameOf(of)}</button
                ><button type="button" class="button" onClick=${() => set(false)}>No</button>`
            : html`<button type="button" class="button danger" onClick=${() => set(true)}>
                End this key
              </button>`
        }
      </div>
      ${revoke.problem && html`<${Trouble} problem=${revoke.problem} />`}
    </div>
  <//>`;
}
