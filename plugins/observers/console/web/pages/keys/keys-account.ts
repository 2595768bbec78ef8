// Details of an account, with the settings that all its keys share and its parent account. Also
// contains the form for a new account.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand } from "../../use-query.ts";
import { limitError, splitLimits, accountDiff } from "../../account-text.ts";
import { LimitBar, LimitField } from "../../limits.ts";
import { Select, TextField } from "../../parts/fields.ts";
import { Dialog, Drawer, toast } from "../../parts/overlay.ts";
import {
  Box,
  Code,
  FactList,
  Badge,
  NoteBox,
  CommandLineHint,
  ErrorNote,
} from "../../parts/basics.ts";
import { buildUrl } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import {
  type Account,
  limitBars,
  type Key,
  displayName,
  withFormValues,
  formError,
  FormFooter,
  GrantsFields,
  fromForm,
  toForm,
  type GrantsForm,
} from "./keys-form.ts";

const parentOptions = (accounts: readonly Account[], but?: string) => [
  ["", "none (top-level account)"] as const,
  ...accounts
    .filter(({ id, state }) => id !== but && state === "valid")
    .map((each) => [each.id, each.path] as const),
];

/** Converts a field to the account's defaults for new keys. */
const toDefaults = (text: string) => {
  const limits = splitLimits(text);
  return limits.length > 0 ? { limits } : undefined;
};

export function NewAccount({
  accounts,
  parent,
  close,
  made,
}: {
  accounts: readonly Account[];
  parent: string;
  close: () => void;
  made: () => void;
}) {
  const [id, name] = useState("");
  const [home, move] = useState(parent);
  const [value, set] = useState<GrantsForm>(toForm({}));
  const [fresh, setFresh] = useState("");
  const [flaw, refuse] = useState<string>();
  const create = useCommand<{ warnings: readonly string[] }>("accounts.create");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = formError(value) ?? limitError(fresh);
    refuse(wrong);
    if (wrong) return;
    const done = await create.run({
      id: id.trim(),
      parent: home || undefined,
      ...fromForm(value, undefined),
      defaults: toDefaults(fresh),
    });
    if (!done) return;
    toast(`${id.trim()} was created.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    made();
    close();
  };
  return html`<${Dialog} title="New account" close=${close}>
    <form class="form" onSubmit=${submit}>
      <div class="filters">
        <${TextField}
          name="Id"
          value=${id}
          set=${name}
          required=${true}
          placeholder="research"
          hint="Used by keys and the ledger. Cannot be changed later."
        />
        <${Select}
          name="Parent account"
          wide=${true}
          value=${home}
          set=${move}
          options=${parentOptions(accounts)}
        />
      </div>
      <${GrantsFields} value=${value} set=${set} />
      <${LimitField} name="Default limits of new keys" value=${fresh} set=${setFresh} />
      <${FormFooter}
        flaw=${flaw}
        problem=${create.error}
        close=${close}
        off=${create.isRunning || id.trim() === ""}
        does="Create the account"
      />
    </form>
  <//>`;
}

export function AccountDetail({
  of,
  accounts,
  keys,
  close,
  changed,
}: {
  of: Account;
  accounts: readonly Account[];
  keys: readonly Key[];
  close: () => void;
  changed: () => void;
}) {
  const [changing, change] = useState(false);
  const inside = accounts.filter(({ parent }) => parent === of.id);
  return html`<${Drawer}
    title=${displayName(of)}
    close=${close}
    actions=${html`<${Badge} tone=${of.state === "valid" ? "good" : "bad"}>${of.state}<//>`}
  >
    <${AccountFacts} of=${of} inside=${inside} />
    ${
      of.definedAt &&
      html`<${NoteBox}
        ><p>
          This account is defined in <code>${of.definedAt}</code>. Edit that file to change it:
          “Change” shows the lines.
        </p><//
      >`
    }
    <${Box}
      title="Limits and budgets"
      actions=${!changing && (of.definedAt ? isAllowed("config.show") : isAllowed("accounts.update")) && of.state === "valid" && html`<button type="button" class="button" onClick=${() => change(true)}>Change</button>`}
    >
      ${
        changing
          ? html`<${EditAccount}
              of=${of}
              accounts=${accounts}
              close=${() => change(false)}
              changed=${changed}
            />`
          : (of.limits?.length ?? 0) === 0
            ? html`<p class="quiet">
                No limits of its own. The limits of its parent accounts apply.
              </p>`
            : html`<div class="stack">
                ${limitBars(of).map((limit, at) => html`<${LimitBar} limit=${limit} own=${of.id} key=${at} />`)}
              </div>`
      }
    <//>
    <${Box}
      title=${`${keys.length} ${keys.length === 1 ? "key" : "keys"} in this account`}
      actions=${isAllowed("keys.create") && html`<a class="button small" href=${buildUrl("/keys", { account: of.id, new: "key" })}>New key</a>`}
    >
      ${
        keys.length === 0
          ? html`<p class="quiet">No key belongs directly to this account.</p>`
          : html`<ul class="stack tight">
              ${keys.slice(0, 50).map((key) => html`<li key=${`${key.id} ${key.created}`}><a href=${buildUrl("/keys", { key: key.id })}>${displayName(key)}</a> ${key.state !== "valid" && html`<${Badge} tone="bad">${key.state}<//>`}</li>`)}
            </ul>`
      }
    <//>
    ${isAllowed("accounts.close") && !of.definedAt && of.state !== "closed" && html`<${CloseAccount} of=${of} changed=${changed} />`}
    <${CommandLineHint} line=${`tollgate accounts show ${of.id}`} />
  <//>`;
}

const AccountFacts = ({ of, inside }: { of: Account; inside: readonly Account[] }) =>
  html`<${FactList}
    of=${[
      ["Path", html`<code>${of.path}</code>`],
      [
        "Parent account",
        of.parent
          ? html`<a href=${buildUrl("/keys", { account: of.parent })}>${of.parent}</a>`
          : "none",
      ],
      [
        "Nested accounts",
        inside.length > 0
          ? inside.map(
              (each) =>
                html`<a key=${each.id} href=${buildUrl("/keys", { account: each.id })}
                  >${displayName(each)}</a
                > `,
            )
          : "none",
      ],
      ["Models", of.models?.join(", ") ?? "same as the parent account"],
      ["Privacy", of.privacy ? `Service-ZDR: ${of.privacy}` : "same as the parent account"],
      ["Default limits of new keys", of.defaults?.limits.join(", ")],
      ["Reports", html`<a href=${buildUrl("/usage", { by: "key", account: of.id })}>Usage</a>`],
    ]}
  />`;

function EditAccount({
  of,
  accounts,
  close,
  changed,
}: {
  of: Account;
  accounts: readonly Account[];
  close: () => void;
  changed: () => void;
}) {
  const [value, set] = useState<GrantsForm>(toForm(of));
  const [home, move] = useState(of.parent ?? "");
  const [fresh, setFresh] = useState((of.defaults?.limits ?? []).join(", "));
  const [flaw, refuse] = useState<string>();
  const [diff, write] = useState<readonly string[]>();
  const update = useCommand<{ warnings?: readonly string[] }>("accounts.update");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = formError(value) ?? limitError(fresh);
    refuse(wrong);
    if (wrong) return;
    if (of.definedAt)
      return write(accountDiff(of, withFormValues(of, value, home, toDefaults(fresh))));
    const version = of.version === undefined ? {} : { version: of.version };
    const done = await update.run({
      id: of.id,
      parent: home || null,
      ...fromForm(value, null),
      defaults: toDefaults(fresh) ?? null,
      ...version,
    });
    if (!done) return;
    toast(`${displayName(of)} was updated.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    changed();
    close();
  };
  return html`<form class="form" onSubmit=${submit}>
    <${Select}
      name="Parent account"
      value=${home}
      set=${move}
      options=${parentOptions(accounts, of.id)}
    />
    <${GrantsFields} value=${value} set=${set} />
    <${LimitField} name="Default limits of new keys" value=${fresh} set=${setFresh} />
    ${diff && html`<${ConfigDiff} of=${of} lines=${diff} />`}
    <${FormFooter}
      flaw=${flaw}
      problem=${update.error}
      close=${close}
      off=${update.isRunning}
      does=${of.definedAt ? "Show the change as YAML" : "Save"}
    />
  </form>`;
}

/**
 * A change to an account that gateway.yaml defines. The console does not write the file, so an
 * operator must apply the change.
 */
const ConfigDiff = ({ of, lines }: { of: Account; lines: readonly string[] }) =>
  html`<div class="stack tight" aria-live="polite">
    ${
      lines.every((line) => line.startsWith(" "))
        ? html`<p class="quiet">No changes.</p>`
        : html`<p class="small">
              Apply this to <code>${of.definedAt}</code>. The gateway reloads the file when you save
              it.
            </p>
            <${Code} text=${lines.join("\n")} label="Change of gateway.yaml" />`
    }
  </div>`;

function CloseAccount({ of, changed }: { of: Account; changed: () => void }) {
  const [sure, set] = useState(false);
  const end = useCommand<unknown>("accounts.close");
  const run = async () => {
    if (!(await end.run({ id: of.id }))) return;
    toast(`${displayName(of)} was closed.`);
    changed();
  };
  return html`<${Box} title="Close the account">
    <div class="stack">
      <p class="small quiet">
        Requests with keys of this account, or of accounts nested under it, are rejected with 403.
        This cannot be undone.
      </p>
      <div class="row">
        ${
          sure
            ? html`<button
                  type="button"
                  class="button danger"
                  disabled=${end.isRunning}
                  onClick=${run}
                >
                  Yes, close ${displayName(of)}</button
                ><button type="button" class="button" onClick=${() => set(false)}>Cancel</button>`
            : html`<button type="button" class="button danger" onClick=${() => set(true)}>
                Close this account
              </button>`
        }
      </div>
      ${end.error && html`<${ErrorNote} problem=${end.error} />`}
    </div>
  <//>`;
}
