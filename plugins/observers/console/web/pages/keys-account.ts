// One account, and a new one: what all keys in it share, and where it stands.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { limitFlaw, limitsIn } from "../limit-text.ts";
import { LimitBar, LimitField } from "../limits.ts";
import { Select, Text } from "../parts/fields.ts";
import { Dialog, Drawer } from "../parts/over.ts";
import { Box, Code, Facts, Mark, NoteBox, SameAs, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf } from "../place.ts";
import { may } from "../rights.ts";
import { accountLines } from "./keys-yaml.ts";
import { type Account, barsOf, type Key, nameOf } from "./keys-shapes.ts";
import { changedTo, flawOf, Foot, Grants, saidBy, typed, type Typed } from "./keys-form.ts";

const places = (accounts: readonly Account[], but?: string) => [
  ["", "none: a top-level account"] as const,
  ...accounts
    .filter(({ id, state }) => id !== but && state === "valid")
    .map((each) => [each.id, each.path] as const),
];

/** What an account says of new keys made in it. */
const defaultsOf = (text: string) => {
  const limits = limitsIn(text);
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
  const [value, set] = useState<Typed>(typed({}));
  const [fresh, setFresh] = useState("");
  const [flaw, refuse] = useState<string>();
  const create = useAct<{ warnings: readonly string[] }>("accounts.create");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = flawOf(value) ?? limitFlaw(fresh);
    refuse(wrong);
    if (wrong) return;
    const done = await create.run({
      id: id.trim(),
      parent: home || undefined,
      ...saidBy(value, undefined),
      defaults: defaultsOf(fresh),
    });
    if (!done) return;
    toast(`${id.trim()} is created.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    made();
    close();
  };
  return html`<${Dialog} title="New account" close=${close}>
    <form class="form" onSubmit=${submit}>
      <div class="filters">
        <${Text}
          name="Id"
          value=${id}
          set=${name}
          required=${true}
          placeholder="research"
          hint="Keys and the ledger use it. It cannot be changed."
        />
        <${Select}
          name="Parent account"
          wide=${true}
          value=${home}
          set=${move}
          of=${places(accounts)}
        />
      </div>
      <${Grants} value=${value} set=${set} />
      <${LimitField} name="Default limits of new keys" value=${fresh} set=${setFresh} />
      <${Foot}
        flaw=${flaw}
        problem=${create.problem}
        close=${close}
        off=${create.busy || id.trim() === ""}
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
    title=${nameOf(of)}
    close=${close}
    actions=${html`<${Mark} tone=${of.state === "valid" ? "good" : "bad"}>${of.state}<//>`}
  >
    <${AccountFacts} of=${of} inside=${inside} />
    ${
      of.from &&
      html`<${NoteBox}
        ><p>
          This account is defined in <code>${of.from}</code>. Edit that file to change it: “Change”
          shows the lines.
        </p><//
      >`
    }
    <${Box}
      title="Limits and budgets"
      actions=${!changing && (of.from ? may("config.show") : may("accounts.update")) && of.state === "valid" && html`<button type="button" class="button" onClick=${() => change(true)}>Change</button>`}
    >
      ${
        changing
          ? html`<${Change}
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
                ${barsOf(of).map((limit, at) => html`<${LimitBar} limit=${limit} own=${of.id} key=${at} />`)}
              </div>`
      }
    <//>
    <${Box}
      title=${`${keys.length} ${keys.length === 1 ? "key" : "keys"} in this account`}
      actions=${may("keys.create") && html`<a class="button small" href=${addressOf("/keys", { account: of.id, new: "key" })}>New key</a>`}
    >
      ${
        keys.length === 0
          ? html`<p class="quiet">No key is directly in this account.</p>`
          : html`<ul class="stack tight">
              ${keys.slice(0, 50).map((key) => html`<li key=${`${key.id} ${key.created}`}><a href=${addressOf("/keys", { key: key.id })}>${nameOf(key)}</a> ${key.state !== "valid" && html`<${Mark} tone="bad">${key.state}<//>`}</li>`)}
            </ul>`
      }
    <//>
    ${may("accounts.end") && !of.from && of.state !== "ended" && html`<${End} of=${of} changed=${changed} />`}
    <${SameAs} line=${`tollgate accounts show ${of.id}`} />
  <//>`;
}

const AccountFacts = ({ of, inside }: { of: Account; inside: readonly Account[] }) =>
  html`<${Facts}
    of=${[
      ["Path", html`<code>${of.path}</code>`],
      [
        "Parent account",
        of.parent
          ? html`<a href=${addressOf("/keys", { account: of.parent })}>${of.parent}</a>`
          : "none",
      ],
      [
        "Accounts in it",
        inside.length > 0
          ? inside.map(
              (each) =>
                html`<a key=${each.id} href=${addressOf("/keys", { account: each.id })}
                  >${nameOf(each)}</a
                > `,
            )
          : "none",
      ],
      ["Models", of.models?.join(", ") ?? "as its parent account"],
      ["Privacy", of.privacy ? `Service-ZDR: ${of.privacy}` : "as its parent account"],
      ["New keys get", of.defaults?.limits.join(", ")],
      ["Reports", html`<a href=${addressOf("/usage", { by: "key", account: of.id })}>Usage</a>`],
    ]}
  />`;

function Change({
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
  const [value, set] = useState<Typed>(typed(of));
  const [home, move] = useState(of.parent ?? "");
  const [fresh, setFresh] = useState((of.defaults?.limits ?? []).join(", "));
  const [flaw, refuse] = useState<string>();
  const [diff, write] = useState<readonly string[]>();
  const update = useAct<{ warnings?: readonly string[] }>("accounts.update");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = flawOf(value) ?? limitFlaw(fresh);
    refuse(wrong);
    if (wrong) return;
    if (of.from) return write(accountLines(of, changedTo(of, value, home, defaultsOf(fresh))));
    const version = of.version === undefined ? {} : { version: of.version };
    const done = await update.run({
      id: of.id,
      parent: home || null,
      ...saidBy(value, null),
      defaults: defaultsOf(fresh) ?? null,
      ...version,
    });
    if (!done) return;
    toast(`${nameOf(of)} is changed.`);
    for (const warning of done.warnings ?? []) toast(warning, "bad");
    changed();
    close();
  };
  return html`<form class="form" onSubmit=${submit}>
    <${Select} name="Parent account" value=${home} set=${move} of=${places(accounts, of.id)} />
    <${Grants} value=${value} set=${set} />
    <${LimitField} name="Default limits of new keys" value=${fresh} set=${setFresh} />
    ${diff && html`<${ToApply} of=${of} lines=${diff} />`}
    <${Foot}
      flaw=${flaw}
      problem=${update.problem}
      close=${close}
      off=${update.busy}
      does=${of.from ? "Show the change as YAML" : "Save"}
    />
  </form>`;
}

/** A change of an account that gateway.yaml defines: the console writes no file, so an operator applies it. */
const ToApply = ({ of, lines }: { of: Account; lines: readonly string[] }) =>
  html`<div class="stack tight" aria-live="polite">
    ${
      lines.every((line) => line.startsWith(" "))
        ? html`<p class="quiet">Nothing is changed.</p>`
        : html`<p class="small">
              Apply this to <code>${of.from}</code>. The gateway reloads the file when you save it.
            </p>
            <${Code} text=${lines.join("\n")} label="Change of gateway.yaml" />`
    }
  </div>`;

function End({ of, changed }: { of: Account; changed: () => void }) {
  const [sure, set] = useState(false);
  const end = useAct<unknown>("accounts.end");
  const run = async () => {
    if (!(await end.run({ id: of.id }))) return;
    toast(`${nameOf(of)} is ended.`);
    changed();
  };
  return html`<${Box} title="End the account">
    <div class="stack">
      <p class="small quiet">
        Requests with its keys, and with the keys of all accounts in it, get 403. This cannot be
        undone.
      </p>
      <div class="row">
        ${
          sure
            ? html`<button type="button" class="button danger" disabled=${end.busy} onClick=${run}>
                  Yes, end ${nameOf(of)}</button
                ><button type="button" class="button" onClick=${() => set(false)}>Cancel</button>`
            : html`<button type="button" class="button danger" onClick=${() => set(true)}>
                End this account
              </button>`
        }
      </div>
      ${end.problem && html`<${Trouble} problem=${end.problem} />`}
    </div>
  <//>`;
}
