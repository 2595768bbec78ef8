// The sign-in form, for a link from the command line or an operator's token.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { html } from "htm/preact";
import type { CommandError } from "./admin-client.ts";
import { TextField } from "./parts/fields.ts";
import { icon } from "./parts/icons.ts";
import { Code, ErrorNote } from "./parts/basics.ts";
import { openSession, type Principal } from "./session.ts";

export function SignIn({
  entered,
  signIn,
  children,
}: {
  entered: (self: Principal) => void;
  signIn?: string | undefined;
  children?: ComponentChildren;
}) {
  const [token, set] = useState("");
  const [problem, refused] = useState<CommandError>();
  const [busy, wait] = useState(false);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    wait(true);
    openSession({ token: token.trim() })
      .then(entered, refused)
      .finally(() => wait(false));
  };
  return html`<main class="door">
    <div class="box">
      <div class="brand">
        ${icon("gate")}
        <h1>Tollgate</h1>
      </div>
      ${problem ? html`<${ErrorNote} problem=${problem} />` : children}
      ${
        signIn &&
        html`<a class="button main" href=${signIn}>Sign in with your identity provider</a>`
      }
      <div class="stack tight">
        <p class="quiet">On the machine of the gateway, this prints a link that works once:</p>
        <${Code} text="tollgate console" label="Command that prints a link" />
      </div>
      <form class="form" onSubmit=${enter}>
        <${TextField}
          name="Or an admin token"
          value=${token}
          set=${set}
          secret=${true}
          required=${true}
        />
        <button class="button main" type="submit" disabled=${busy || token === ""}>Sign in</button>
      </form>
    </div>
  </main>`;
}
