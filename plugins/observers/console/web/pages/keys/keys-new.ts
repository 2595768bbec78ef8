// Form for a new key. Shows the secret once after creation.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand } from "../../use-command.ts";
import { useQuery } from "../../use-query.ts";
import { NewSecret } from "../../new-secret.ts";
import { Select, TextField } from "../../parts/fields.ts";
import { Dialog } from "../../parts/overlay.ts";
import { NoteBox } from "../../parts/basics.ts";
import { type Account, type Key, displayName } from "./keys-types.ts";
import {
  formError,
  FormFooter,
  GrantsFields,
  fromForm,
  toForm,
  type GrantsForm,
} from "./keys-form.ts";

interface CreatedKey {
  readonly secret: string;
  readonly key: Key;
  readonly warnings: readonly string[];
}

export function NewKey({
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
