// Details of a key: its permissions, its remaining limits, and actions to edit, move, rotate, or
// revoke it. When a key is edited, its secret does not change.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { useCommand, useQuery } from "../../use-query.ts";
import { runCommand } from "../../admin-client.ts";
import { NewSecret } from "../../new-secret.ts";
import { LimitBar } from "../../limits.ts";
import { Select } from "../../parts/fields.ts";
import { Drawer, toast } from "../../parts/overlay.ts";
import { Box, FactList, Badge, NoteBox, CommandLineHint, ErrorNote } from "../../parts/basics.ts";
import { buildUrl } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import { formatAgo, formatDateTime } from "../../format.ts";
import {
  type Account,
  limitBars,
  type Key,
  displayName,
  formError,
  FormFooter,
  GrantsFields,
  fromForm,
  toForm,
  type GrantsForm,
} from "./keys-form.ts";

/** Overlap periods, with their value for the command-line option: `--overlap 24h`. */
const OVERLAPS = [
  ["0", "stops working immediately", ""],
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
  const shown = useQuery<{ keys: readonly Key[] }>(
    "keys.show",
    { id: of.id },
    { intervalMs: 5_000 },
  );
  const key = shown.value?.keys[0] ?? of;
  const again = () => (shown.refetch(), changed());
  const labels = Object.entries(key.labels ?? {});
  return html`<${Drawer}
    title=${displayName(key)}
    close=${close}
    actions=${html`<${Badge} tone=${key.state === "valid" ? "good" : "bad"}>${key.state}<//>`}
  >
    <${FactList}
      of=${[
        ["ID", html`<code>${key.id}</code>`],
        [
          "Account",
          key.account
            ? html`<a href=${buildUrl("/keys", { account: key.account })}>${key.account}</a>`
            : "none",
        ],
        ["Models", key.models?.join(", ") ?? "all"],
        ["Frontends", key.frontends?.join(", ") ?? "all"],
        ["Privacy", key.privacy ? `Service-ZDR: ${key.privacy}` : "set by each request"],
        [
          "Labels",
          labels.length > 0
            ? labels.map(
                ([name, word]) => html`<${Badge} plain=${true} key=${name}>${name}=${word}<//> `,
              )
            : undefined,
        ],
        ["Created", formatDateTime(key.created)],
        ["Last used", isAllowed("requests.search") && html`<${LastUsed} id=${key.id} />`],
        [
          "Expires",
          key.expires ? `${formatDateTime(key.expires)}, ${formatAgo(key.expires)}` : "never",
        ],
        [
          "Reports",
          html`<a href=${buildUrl("/usage", { by: "model", key: key.id })}>Usage</a>${" · "}<a
              href=${buildUrl("/requests", { key: key.id })}
              >Requests</a
            >`,
        ],
      ]}
    />
    <${Box}
      title="Limits and budgets"
      actions=${!changing && isAllowed("keys.update") && key.state === "valid" && html`<button type="button" class="button" onClick=${() => change(true)}>Change</button>`}
    >
      ${
        changing
          ? html`<${EditKey} of=${key} close=${() => change(false)} changed=${again} />`
          : (key.limitUsage ?? limitBars(key)).length === 0
            ? html`<p class="quiet">No limits of its own. The limits of its accounts apply.</p>`
            : html`<div class="stack">
                ${(key.limitUsage ?? limitBars(key)).map((limit, at) => html`<${LimitBar} limit=${limit} key=${at} />`)}
              </div>`
      }
    <//>
    ${key.state === "valid" && isAllowed("keys.rotate") && html`<${RotateKey} of=${key} changed=${again} />`}
    ${key.state === "valid" && isAllowed("keys.move") && html`<${MoveKey} of=${key} accounts=${accounts} changed=${again} />`}
    ${key.state !== "revoked" && isAllowed("keys.revoke") && html`<${RevokeKey} of=${key} changed=${again} />`}
    <${CommandLineHint} line=${`tollgate keys show ${key.id}`} />
  <//>`;
}

/**
 * Maximum number of search pages to read. Each page takes a fraction of a second, whatever the size
 * of the ledger is.
 */
const MAX_SEARCHES = 12;

interface SearchPage {
  readonly items: readonly { readonly at: number }[];
  readonly next?: string;
}

/**
 * Returns the time of the newest call, or undefined if the searched part of the ledger has none.
 */
async function findNewestCall(key: string, over: AbortSignal): Promise<number | undefined> {
  let after: string | undefined;
  for (let n = 0; n < MAX_SEARCHES; n++) {
    const of = { key, limit: 5, ...(after !== undefined && { after }) };
    const page = await runCommand<SearchPage>("requests.search", of, over);
    if (page.items[0]) return page.items[0].at;
    if (page.next === undefined) return undefined;
    after = page.next;
  }
  return undefined;
}

/** Time of the newest call in the ledger. */
function LastUsed({ id }: { id: string }) {
  const [at, set] = useState<number | "none">();
  useEffect(() => {
    const over = new AbortController();
    findNewestCall(id, over.signal).then(
      (found) => set(found ?? "none"),
      () => {},
    );
    return () => over.abort();
  }, [id]);
  if (at === undefined) return html`<span class="faint">–</span>`;
  if (at === "none") return html`<span class="faint">no call found</span>`;
  return html`${formatAgo(at)} <span class="faint">(${formatDateTime(at)})</span>`;
}

function EditKey({ of, close, changed }: { of: Key; close: () => void; changed: () => void }) {
  const [value, set] = useState<GrantsForm>(toForm(of));
  const [flaw, refuse] = useState<string>();
  const update = useCommand<{ warnings?: readonly string[] }>("keys.update");
  const submit = async (event: Event) => {
    event.preventDefault();
    refuse(formError(value));
    if (formError(value)) return;
    const version = of.version === undefined ? {} : { version: of.version };
    const done = await update.run({ id: of.id, ...fromForm(value, null), ...version });
    if (!done) return;
    toast(`${displayName(of)} was updated. Its secret is unchanged.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    changed();
    close();
  };
  return html`<form class="form" onSubmit=${submit}>
    <${GrantsFields} value=${value} set=${set} />
    <${FormFooter}
      flaw=${flaw}
      problem=${update.error}
      close=${close}
      off=${update.isRunning}
      does="Save"
    />
  </form>`;
}

function RotateKey({ of, changed }: { of: Key; changed: () => void }) {
  const [overlap, set] = useState("3600000");
  const [sure, confirm] = useState(false);
  const rotate = useCommand<{ secret: string }>("keys.rotate");
  const status = useQuery<{ url: string }>("status");
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
                  options=${OVERLAPS.map(([ms, label]) => [ms, label] as const)}
                />
                ${!sure && html`<button type="button" class="button" onClick=${() => confirm(true)}>Rotate…</button>`}
              </div>
              ${
                sure &&
                html`<${NoteBox} tone="warn"
                  ><p>
                    Rotate ${displayName(of)}? The old secret ${effect}.
                    ${overlap === "0" ? "Clients that still use it get 401." : "Update your clients before then."}
                  </p>
                  <div class="row">
                    <button
                      type="button"
                      class="button danger"
                      disabled=${rotate.isRunning}
                      onClick=${run}
                    >
                      Yes, rotate ${displayName(of)}</button
                    ><button type="button" class="button" onClick=${() => confirm(false)}>
                      Cancel
                    </button>
                  </div><//
                >`
              }
              <${CommandLineHint}
                line=${`tollgate keys rotate ${of.id}${flag && ` --overlap ${flag}`}`}
              />`
      }
      ${rotate.error && html`<${ErrorNote} problem=${rotate.error} />`}
    </div>
  <//>`;
}

function MoveKey({
  of,
  accounts,
  changed,
}: {
  of: Key;
  accounts: readonly Account[];
  changed: () => void;
}) {
  const [to, set] = useState(of.account ?? "");
  const move = useCommand<unknown>("keys.move");
  if (accounts.length === 0) return null;
  const run = async () => {
    if (!(await move.run({ id: of.id, account: to || undefined }))) return;
    toast(`${displayName(of)} is now in ${to || "no account"}.`);
    changed();
  };
  return html`<${Box} title="Move to another account">
    <div class="stack">
      <p class="small quiet">Earlier calls stay with the old account.</p>
      <div class="filters">
        <${Select}
          name="Account"
          value=${to}
          set=${set}
          options=${[["", "none"], ...accounts.map((each) => [each.id, each.path] as const)]}
        /><button
          type="button"
          class="button"
          disabled=${move.isRunning || to === (of.account ?? "")}
          onClick=${run}
        >
          Move
        </button>
      </div>
      ${move.error && html`<${ErrorNote} problem=${move.error} />`}
    </div>
  <//>`;
}

function RevokeKey({ of, changed }: { of: Key; changed: () => void }) {
  const [sure, set] = useState(false);
  const revoke = useCommand<unknown>("keys.revoke");
  const run = async () => {
    if (!(await revoke.run({ id: of.id }))) return;
    toast(`${displayName(of)} was revoked.`);
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
                  disabled=${revoke.isRunning}
                  onClick=${run}
                >
                  Yes, revoke ${displayName(of)}</button
                ><button type="button" class="button" onClick=${() => set(false)}>Cancel</button>`
            : html`<button type="button" class="button danger" onClick=${() => set(true)}>
                Revoke this key
              </button>`
        }
      </div>
      ${revoke.error && html`<${ErrorNote} problem=${revoke.error} />`}
    </div>
  <//>`;
}
