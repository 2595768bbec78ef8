// The door: a link from the shell opens it, or an operator's token.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { html } from "htm/preact";
import type { Refusal } from "./ask.ts";
import { Text } from "./parts/fields.ts";
import { icon } from "./parts/icons.ts";
import { Code, Trouble } from "./parts/plain.ts";
import { comeIn, type Self } from "./session.ts";

export function Door({
  entered,
  signIn,
  children,
}: {
  entered: (self: Self) => void;
  signIn?: string | undefined;
  children?: ComponentChildren;
}) {
  const [token, set] = useState("");
  const [problem, refused] = useState<Refusal>();
  const [busy, wait] = useState(false);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    wait(true);
    comeIn({ token: token.trim() })
      .then(entered, refused)
      .finally(() => wait(false));
  };
  return html`<main class="door">
    <div class="box">
      <div class="brand">
        ${icon("gate")}
        <h1>Tollgate</h1>
      </div>
      ${problem ? html`<${Trouble} problem=${problem} />` : children}
      ${
        signIn &&
        html`<a class="button main" href=${signIn}>Sign in with your identity provider</a>`
      }
      <div class="stack tight">
        <p class="quiet">On the machine of the gateway, this prints a link that works once:</p>
        <${Code} text="tollgate console" label="Command that prints a link" />
      </div>
      <form class="form" onSubmit=${enter}>
        <${Text}
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
