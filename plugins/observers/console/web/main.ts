// The console: finds out for which operator it is, and shows the door or the pages.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { onSignedOut, Refusal } from "./ask.ts";
import { forget } from "./data.ts";
import { Door } from "./door.ts";
import { Trouble } from "./parts/plain.ts";
import { allow } from "./rights.ts";
import { comeIn, failedSignIn, hashOfAddress, type Self, whoAmI } from "./session.ts";
import { Shell } from "./shell.ts";
import { theme } from "./theme.ts";

type State = { self?: Self; asked: boolean; problem?: Refusal };

function Console() {
  const [{ self, asked, problem }, set] = useState<State>({ asked: false });
  const [signIn, offer] = useState<string>();
  const entered = (self: Self) => {
    allow(self.commands);
    set({ self, asked: true });
  };
  useEffect(() => {
    const { word, problem } = hashOfAddress();
    const enter = word === undefined ? whoAmI() : comeIn({ word });
    enter.then(
      (self) => {
        offer(self.sign_in);
        entered(self);
      },
      (refusal: Refusal) => {
        offer(refusal.signIn);
        if (problem !== undefined) set({ asked: true, problem: failedSignIn(problem) });
        else if (word === undefined && refusal.status === 401) set({ asked: true });
        else set({ asked: true, problem: refusal });
      },
    );
    return onSignedOut(() => {
      forget();
      set((before) => (before.asked ? { asked: true } : before));
    });
  }, []);
  if (self) return html`<${Shell} self=${self} left=${() => set({ asked: true })} />`;
  if (!asked) return null;
  return html`<${Door} entered=${entered} signIn=${signIn}
    >${problem && html`<${Trouble} problem=${problem} />`}<//
  >`;
}

theme.apply();
render(html`<${Console} />`, document.getElementById("console")!);
