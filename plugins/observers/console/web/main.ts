// Entry point of the console. Loads the principal and shows the sign-in form or the pages.
import { render, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { onSessionEnded, CommandError } from "./admin-client.ts";
import { clearCache } from "./use-query.ts";
import { ErrorNote, Code } from "./parts/basics.ts";
import {
  setAllowedCommands,
  openSession,
  signInError,
  takeUrlFragment,
  type Principal,
  fetchPrincipal,
  theme,
} from "./session.ts";
import { Shell } from "./shell.ts";
import { TextField } from "./parts/fields.ts";
import { icon } from "./parts/icons.ts";

type State = { self?: Principal; hasLoaded: boolean; problem?: CommandError };

function Console() {
  const [{ self, hasLoaded, problem }, set] = useState<State>({ hasLoaded: false });
  const [signIn, offer] = useState<string>();
  const entered = (self: Principal) => {
    setAllowedCommands(self.commands);
    set({ self, hasLoaded: true });
  };
  useEffect(() => {
    const { code, problem } = takeUrlFragment();
    const enter = code === undefined ? fetchPrincipal() : openSession({ code });
    enter.then(
      (self) => {
        offer(self.sign_in);
        entered(self);
      },
      (refusal: CommandError) => {
        offer(refusal.signIn);
        if (problem !== undefined) set({ hasLoaded: true, problem: signInError(problem) });
        else if (code === undefined && refusal.status === 401) set({ hasLoaded: true });
        else set({ hasLoaded: true, problem: refusal });
      },
    );
    return onSessionEnded(() => {
      clearCache();
      set((before) => (before.hasLoaded ? { hasLoaded: true } : before));
    });
  }, []);
  if (self) return html`<${Shell} self=${self} left=${() => set({ hasLoaded: true })} />`;
  if (!hasLoaded) return null;
  return html`<${SignIn} entered=${entered} signIn=${signIn}
    >${problem && html`<${ErrorNote} problem=${problem} />`}<//
  >`;
}

theme.apply();
render(html`<${Console} />`, document.getElementById("console")!);

// The sign-in form, for a link from the command line or an operator's token.

function SignIn({
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
