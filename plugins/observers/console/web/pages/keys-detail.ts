// One key: what it may, what is left of it, and what is done with it: changed without a new secret, moved, given another secret, ended.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { ask } from "../ask.ts";
import { useAsk } from "../data.ts";
import { NewSecret } from "../new-secret.ts";
import { LimitBar } from "../limits.ts";
import { Select } from "../parts/fields.ts";
import { Drawer } from "../parts/over.ts";
import { Box, Facts, Mark, NoteBox, SameAs, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf } from "../place.ts";
import { may } from "../rights.ts";
import { ago, moment } from "../words.ts";
import { type Account, barsOf, type Key, nameOf } from "./keys-shapes.ts";
import { flawOf, Foot, Grants, saidBy, typed, type Typed } from "./keys-form.ts";

/** As the command line takes it: `--overlap 24h`. */
const OVERLAPS = [
  ["0", "stops working now", ""],
  ["3600000", "works for 1 more hour", "1h"],
  ["86400000", "works for 1 more day", "24h"],
  ["604800000", "works for 7 more days", "7d"],
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
        ["ID", html`<code>${key.id}</code>`],
        [
          "Account",
          key.account
            ? html`<a href=${addressOf("/keys", { account: key.account })}>${key.account}</a>`
            : "none",
        ],
        ["Models", key.models?.join(", ") ?? "all"],
        ["Frontends", key.frontends?.join(", ") ?? "all"],
        ["Privacy", key.privacy ? `Service-ZDR: ${key.privacy}` : "as each request asks"],
        [
          "Labels",
          labels.length > 0
            ? labels.map(
                ([name, word]) => html`<${Mark} plain=${true} key=${name}>${name}=${word}<//> `,
              )
            : undefined,
        ],
        ["Created", moment(key.created)],
        ["Last used", may("requests.search") && html`<${LastUsed} id=${key.id} />`],
        ["Expires", key.expires ? `${moment(key.expires)}, ${ago(key.expires)}` : "never"],
        [
          "Reports",
          html`<a href=${addressOf("/usage", { by: "model", key: key.id })}>Usage</a>${" · "}<a
              href=${addressOf("/requests", { key: key.id })}
              >Requests</a
            >`,
        ],
      ]}
    />
    <${Box}
      title="Limits and budgets"
      actions=${!changing && may("keys.update") && key.state === "valid" && html`<button type="button" class="button" onClick=${() => change(true)}>Change</button>`}
    >
      ${
        changing
          ? html`<${Change} of=${key} close=${() => change(false)} changed=${again} />`
          : (key.counted ?? barsOf(key)).length === 0
            ? html`<p class="quiet">No limits of its own. The limits of its accounts apply.</p>`
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

/** Answers of a search that are read: each takes a part of a second, however large the ledger is. */
const SEARCHED = 12;

interface Search {
  readonly items: readonly { readonly at: number }[];
  readonly next?: string;
}

/** Undefined: there is none as far as it was looked. */
async function newestCall(key: string, over: AbortSignal): Promise<number | undefined> {
  let after: string | undefined;
  for (let n = 0; n < SEARCHED; n++) {
    const of = { key, limit: 5, ...(after !== undefined && { after }) };
    const page = await ask<Search>("requests.search", of, over);
    if (page.items[0]) return page.items[0].at;
    if (page.next === undefined) return undefined;
    after = page.next;
  }
  return undefined;
}

/** The newest call in the ledger. */
function LastUsed({ id }: { id: string }) {
  const [at, set] = useState<number | "none">();
  useEffect(() => {
    const over = new AbortController();
    newestCall(id, over.signal).then(
      (found) => set(found ?? "none"),
      () => {},
    );
    return () => over.abort();
  }, [id]);
  if (at === undefined) return html`<span class="faint">–</span>`;
  if (at === "none") return html`<span class="faint">no call found</span>`;
  return html`${ago(at)} <span class="faint">(${moment(at)})</span>`;
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
  const [sure, confirm] = useState(false);
  const rotate = useAct<{ secret: string }>("keys.rotate");
  const status = useAsk<{ url: string }>("status");
  const run = async () => {
    if (await rotate.run({ id: of.id, overlapMs: Number(overlap) })) changed();
    else confirm(false);
  };
  const [, effect, flag] = OVERLAPS.find(([ms]) => ms === overlap)!;
  return html`<${Box} title="Rotate the secret">
    <div class="stack">
      <p class="small quiet">
        The key gets a new secret. Its ID, limits, and history stay the same.
      </p>
      ${
        rotate.value
          ? html`<${NewSecret} secret=${rotate.value.secret} url=${status.value?.url ?? ""} />`
          : html`<div class="filters">
                <${Select}
                  name="The old secret"
                  wide=${true}
                  value=${overlap}
                  set=${(to: string) => (set(to), confirm(false))}
                  of=${OVERLAPS.map(([ms, said]) => [ms, said] as const)}
                />
                ${!sure && html`<button type="button" class="button" onClick=${() => confirm(true)}>Rotate…</button>`}
              </div>
              ${
                sure &&
                html`<${NoteBox} tone="warn"
                  ><p>
                    Rotate ${nameOf(of)}? The old secret ${effect}.
                    ${overlap === "0" ? "Clients that still use it get 401." : "Update your clients before then."}
                  </p>
                  <div class="row">
                    <button
                      type="button"
                      class="button danger"
                      disabled=${rotate.busy}
                      onClick=${run}
                    >
                      Yes, rotate ${nameOf(of)}</button
                    ><button type="button" class="button" onClick=${() => confirm(false)}>
                      Cancel
                    </button>
                  </div><//
                >`
              }
              <${SameAs} line=${`tollgate keys rotate ${of.id}${flag && ` --overlap ${flag}`}`} />`
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
    toast(`${nameOf(of)} is now in ${to || "no account"}.`);
    changed();
  };
  return html`<${Box} title="Move to another account">
    <div class="stack">
      <p class="small quiet">Calls that were already made stay with the old account.</p>
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
    toast(`${nameOf(of)} is revoked.`);
    changed();
  };
  return html`<${Box} title="Revoke the key">
    <div class="stack">
      <p class="small quiet">
        Clients that use the key get 401. This cannot be undone. Its history stays in the ledger.
      </p>
      <div class="row">
        ${
          sure
            ? html`<button
                  type="button"
                  class="button danger"
                  disabled=${revoke.busy}
                  onClick=${run}
                >
                  Yes, revoke ${nameOf(of)}</button
                ><button type="button" class="button" onClick=${() => set(false)}>Cancel</button>`
            : html`<button type="button" class="button danger" onClick=${() => set(true)}>
                Revoke this key
              </button>`
        }
      </div>
      ${revoke.problem && html`<${Trouble} problem=${revoke.problem} />`}
    </div>
  <//>`;
}
