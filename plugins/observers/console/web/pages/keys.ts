// Keys and the accounts that they draw on: what each may use, how much of it is left, and the hand that changes it.
import { html } from "htm/preact";
import { useAsk } from "../data.ts";
import { icon } from "../parts/icons.ts";
import { Figures, SameAs, Shown } from "../parts/plain.ts";
import { useWord } from "../place.ts";
import { may } from "../rights.ts";
import { count } from "../words.ts";
import { AccountDetail, NewAccount } from "./keys-account.ts";
import { KeyDetail } from "./keys-detail.ts";
import { NewKey } from "./keys-new.ts";
import type { Account, Key } from "./keys-shapes.ts";
import { AccountTable, KeyTable } from "./keys-tables.ts";

const EVERY_MS = 10_000;
export function Keys() {
  const keys = useAsk<{ keys: readonly Key[] }>("keys.list", {}, { every: EVERY_MS });
  const accounts = useAsk<{ accounts: readonly Account[] }>(
    "accounts.list",
    {},
    { every: EVERY_MS },
  );
  const [making, make] = useWord("new");
  const [chosen, choose] = useWord("key");
  const [account, chooseAccount] = useWord("account");
  const again = () => (keys.again(), accounts.again());
  const all = (keys.value?.keys ?? []).filter(({ admin }) => admin === undefined);
  const there = accounts.value?.accounts ?? [];
  const one = all.find(({ id }) => id === chosen);
  const own = there.find(({ id }) => id === account);
  return html` <div class="row">
      <span class="grow"></span>
      ${may("accounts.create") && html`<button type="button" class="button" onClick=${() => make("account")}>New account</button>`}
      ${may("keys.create") && html`<button type="button" class="button main" onClick=${() => make("key")}>${icon("keys")}New key</button>`}
    </div>
    <${Shown} of=${keys}
      >${() => accounts.value && html`<${Summary} keys=${all} accounts=${there} />`}<//
    >
    <${Shown} of=${accounts}
      >${() =>
        html`<${AccountTable}
          accounts=${there}
          open=${chooseAccount}
          chosen=${account}
          make=${() => make("account")}
        />`}<//
    >
    <${Shown} of=${keys}
      >${() => html`<${KeyTable} keys=${all} accounts=${there} open=${choose} chosen=${chosen} make=${() => make("key")} />`}<//
    >
    <${SameAs} line="tollgate keys list" />
    ${making === "key" && may("keys.create") && html`<${NewKey} accounts=${there} account=${account} close=${() => make("")} made=${again} />`}
    ${making === "account" && may("accounts.create") && html`<${NewAccount} accounts=${there} parent=${account} close=${() => make("")} made=${again} />`}
    ${one && !making && html`<${KeyDetail} of=${one} key=${one.id} accounts=${there} close=${() => choose("")} changed=${again} />`}
    ${own && !one && !making && html`<${AccountDetail} of=${own} key=${own.id} accounts=${there} keys=${all.filter((each) => each.account === own.id)} close=${() => chooseAccount("")} changed=${again} />`}`;
}

function Summary({ keys, accounts }: { keys: readonly Key[]; accounts: readonly Account[] }) {
  const valid = keys.filter(({ state }) => state === "valid");
  const shares = [...keys, ...accounts].flatMap(({ counted = [] }) =>
    counted.map(({ used, max }) => (Number(max) > 0 ? Number(used) / Number(max) : 0)),
  );
  const near = shares.filter((each) => each >= 0.8 && each < 1).length;
  const over = shares.filter((each) => each >= 1).length;
  return html`<${Figures}
    of=${[
      {
        name: "Active keys",
        value: count(valid.length),
        note: `${count(keys.length - valid.length)} revoked or expired`,
      },
      {
        name: "Accounts",
        value: count(accounts.length),
        note: accounts.length === 0 ? "no shared budgets" : "with shared budgets",
      },
      {
        name: "Limits used up",
        value: count(over),
        note: over > 0 ? "requests are rejected" : "no request is rejected",
        tone: over > 0 ? "bad" : "good",
      },
      {
        name: "Limits above 80%",
        value: count(near),
        tone: near > 0 ? "warn" : "good",
        note: near > 0 ? "close to being used up" : "none is close",
      },
    ]}
  />`;
}
