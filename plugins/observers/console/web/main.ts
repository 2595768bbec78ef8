// Entry point of the console. Loads the principal and shows the sign-in form or the pages.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { onSessionEnded, CommandError } from "./admin-client.ts";
import { clearCache } from "./use-query.ts";
import { SignIn } from "./sign-in.ts";
import { ErrorNote } from "./parts/basics.ts";
import { setAllowedCommands } from "./permissions.ts";
import {
  openSession,
  signInError,
  takeUrlFragment,
  type Principal,
  fetchPrincipal,
} from "./session.ts";
import { Shell } from "./shell.ts";
import { theme } from "./theme.ts";

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
