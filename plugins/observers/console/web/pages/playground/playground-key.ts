// The API key of the playground. It is kept only in the page's memory and is lost when the page closes.
import { useState } from "preact/hooks";
import { html } from "htm/preact";
import { runCommand, type CommandError } from "../../admin-client.ts";
import { icon } from "../../parts/icons.ts";
import { ErrorNote } from "../../parts/basics.ts";
import { TextField } from "../../parts/fields.ts";
import { toast } from "../../parts/overlay.ts";
import { isAllowed } from "../../session.ts";

/** The last key that was used. Not stored anywhere, so it is lost when the page closes. */
let lastKey = "";
const HOUR = 3_600_000;

/** Returns the key, and a function that replaces it. */
export function useKey(): [key: string, set: (to: string) => void] {
  const [key, setKey] = useState(lastKey);
  const remember = (to: string) => {
    lastKey = to;
    setKey(to);
  };
  return [key, remember];
}

export function KeyField({ value, set }: { value: string; set: (to: string) => void }) {
  const [problem, refused] = useState<CommandError>();
  const make = () =>
    runCommand<{ secret: string }>("keys.create", {
      name: "playground",
      expires: Date.now() + HOUR,
    }).then(
      ({ secret }) => (
        set(secret),
        toast("Created a key that expires in 1 hour. Only this page has the key.")
      ),
      refused,
    );
  return html`<div class="stack tight">
    <div class="row filters">
      <${TextField}
        wide=${true}
        name="Key"
        value=${value}
        set=${set}
        secret=${true}
        placeholder="tg_…"
        hint="Kept only in the memory of this page until you leave it."
      />
    </div>
    ${value === "" && isAllowed("keys.create") && html`<p class="small row"><button type="button" class="button small" onClick=${make}>${icon("keys")}Create a key for 1 hour</button></p>`}
    ${problem && html`<${ErrorNote} problem=${problem} />`}
  </div>`;
}
