// Keys page: keys and the accounts they are charged to, their remaining limits, and the actions on
// them.
import { html } from "htm/preact";
import { useQuery, useCommand } from "../../use-query.ts";
import { icon } from "../../parts/icons.ts";
import { Figures, CommandLineHint, QueryResult, NoteBox } from "../../parts/basics.ts";
import { useQueryParam } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import { formatCount } from "../../format.ts";
import { AccountDetail, NewAccount } from "./keys-account.ts";
import { KeyDetail } from "./keys-detail.ts";
import {
  type Account,
  type Key,
  displayName,
  formError,
  FormFooter,
  GrantsFields,
  fromForm,
  toForm,
  type GrantsForm,
} from "./keys-form.ts";
import { AccountTable, KeyTable } from "./keys-tables.ts";
import { useState } from "preact/hooks";
import { NewSecret } from "../../new-secret.ts";
import { Select, TextField } from "../../parts/fields.ts";
import { Dialog } from "../../parts/overlay.ts";

const POLL_MS = 10_000;
export function KeysPage() {
  const keys = useQuery<{ keys: readonly Key[] }>("keys.list", {}, { intervalMs: POLL_MS });
  const accounts = useQuery<{ accounts: readonly Account[] }>(
    "accounts.list",
    {},
    { intervalMs: POLL_MS },
  );
  const [making, make] = useQueryParam("new");
  const [chosen, choose] = useQueryParam("key");
  const [account, chooseAccount] = useQueryParam("account");
  const again = () => (keys.refetch(), accounts.refetch());
  const all = (keys.value?.keys ?? []).filter(({ admin }) => admin === undefined);
  const there = accounts.value?.accounts ?? [];
  const one = all.find(({ id }) => id === chosen);
  const own = there.find(({ id }) => id === account);
  return html` <div class="row">
      <span class="grow"></span>
      ${isAllowed("accounts.create") && html`<button type="button" class="button" onClick=${() => make("account")}>New account</button>`}
      ${isAllowed("keys.create") && html`<button type="button" class="button main" onClick=${() => make("key")}>${icon("keys")}New key</button>`}
    </div>
    <${QueryResult} of=${keys}
      >${() => accounts.value && html`<${Summary} keys=${all} accounts=${there} />`}<//
    >
    <${QueryResult} of=${accounts}
      >${() =>
        html`<${AccountTable}
          accounts=${there}
          open=${chooseAccount}
          chosen=${account}
          make=${() => make("account")}
        />`}<//
    >
    <${QueryResult} of=${keys}
      >${() => html`<${KeyTable} keys=${all} accounts=${there} open=${choose} chosen=${chosen} make=${() => make("key")} />`}<//
    >
    <${CommandLineHint} line="tollgate keys list" />
    ${making === "key" && isAllowed("keys.create") && html`<${NewKey} accounts=${there} account=${account} close=${() => make("")} made=${again} />`}
    ${making === "account" && isAllowed("accounts.create") && html`<${NewAccount} accounts=${there} parent=${account} close=${() => make("")} made=${again} />`}
    ${one && !making && html`<${KeyDetail} of=${one} key=${one.id} accounts=${there} close=${() => choose("")} changed=${again} />`}
    ${own && !one && !making && html`<${AccountDetail} of=${own} key=${own.id} accounts=${there} keys=${all.filter((each) => each.account === own.id)} close=${() => chooseAccount("")} changed=${again} />`}`;
}

function Summary({ keys, accounts }: { keys: readonly Key[]; accounts: readonly Account[] }) {
  const valid = keys.filter(({ state }) => state === "valid");
  const shares = [...keys, ...accounts].flatMap(({ limitUsage = [] }) =>
    limitUsage.map(({ used, max }) => (Number(max) > 0 ? Number(used) / Number(max) : 0)),
  );
  const near = shares.filter((each) => each >= 0.8 && each < 1).length;
  const over = shares.filter((each) => each >= 1).length;
  return html`<${Figures}
    of=${[
      {
        name: "Active keys",
        value: formatCount(valid.length),
        note: `${formatCount(keys.length - valid.length)} revoked or expired`,
      },
      {
        name: "Accounts",
        value: formatCount(accounts.length),
        note: accounts.length === 0 ? "no shared budgets" : "with shared budgets",
      },
      {
        name: "Limits used up",
        value: formatCount(over),
        note: over > 0 ? "requests are rejected" : "no request is rejected",
        tone: over > 0 ? "bad" : "good",
      },
      {
        name: "Limits above 80%",
        value: formatCount(near),
        tone: near > 0 ? "warn" : "good",
        note: near > 0 ? "close to being used up" : "none",
      },
    ]}
  />`;
}

// Form for a new key. Shows the secret once after creation.

interface CreatedKey {
  readonly secret: string;
  readonly key: Key;
  readonly warnings: readonly string[];
}

function NewKey({
  accounts,
  account,
  close,
  made,
}: {
  accounts: readonly Account[];
  account: string;
  close: () => void;
  made: () => void;
}) {
  const [value, set] = useState<GrantsForm>(toForm({}));
  const [home, move] = useState(account);
  const [ends, end] = useState("");
  const [problem, refuse] = useState<string>();
  const create = useCommand<CreatedKey>("keys.create");
  const status = useQuery<{ url: string }>("status");
  const submit = async (event: Event) => {
    event.preventDefault();
    const flaw = formError(value);
    refuse(flaw);
    if (flaw) return;
    const done = await create.run({
      ...fromForm(value, undefined),
      account: home || undefined,
      expires: ends ? Date.parse(ends) : undefined,
    });
    if (done) made();
  };
  const got = create.value;
  if (got)
    return html`<${Dialog} title=${`${displayName(got.key)} was created`} close=${close}>
      ${got.warnings.map((warning) => html`<${NoteBox} tone="warn" key=${warning}><p>${warning}</p><//>`)}
      <${NewSecret} secret=${got.secret} url=${status.value?.url ?? ""} />
      <footer><button type="button" class="button main" onClick=${close}>Done</button></footer>
    <//>`;
  return html`<${Dialog} title="New key" close=${close}>
    <form class="form" onSubmit=${submit}>
      <${GrantsFields} value=${value} set=${set} />
      <div class="filters">
        <${Select}
          name="Account"
          value=${home}
          set=${move}
          options=${[["", "none"], ...accounts.filter(({ state }) => state === "valid").map((each) => [each.id, each.path] as const)]}
        />
        <${TextField}
          name="Expires"
          type="datetime-local"
          value=${ends}
          set=${end}
          hint="Empty: never"
        />
      </div>
      <${FormFooter}
        flaw=${problem}
        problem=${create.error}
        close=${close}
        off=${create.isRunning}
        does="Create the key"
      />
    </form>
  <//>`;
}
