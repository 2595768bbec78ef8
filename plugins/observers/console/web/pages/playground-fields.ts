// The fields of a draft, as many of them as its frontend has.
import type { ComponentChildren } from "preact";
import { html } from "htm/preact";
import { Check, Select, Text } from "../parts/fields.ts";
import { icon, type IconName } from "../parts/icons.ts";
import { toast } from "../parts/toasts.ts";
import type { Attached, Draft, Field, Frontend } from "./playground-frontend.ts";
import { dataAddress } from "./playground-send.ts";

interface FieldsOf {
  readonly frontend: Frontend;
  readonly draft: Draft;
  readonly put: (part: Partial<Draft>) => void;
  /** Those that every frontend has. */
  readonly children: ComponentChildren;
}

export function Fields({ frontend, draft, put, children }: FieldsOf) {
  const has = (field: Field) => frontend.fields.includes(field);
  const text = (name: string, field: "system" | "prompt" | "documents", more: object) =>
    html`<${Text}
      name=${name}
      value=${draft[field]}
      set=${(to: string) => put({ [field]: to })}
      ...${more}
    />`;
  const check = (name: string, field: "stream" | "tool") =>
    html`<${Check}
      name=${name}
      value=${draft[field]}
      set=${(to: boolean) => put({ [field]: to })}
    />`;
  return html`${has("system") && text("System", "system", { placeholder: "none" })}
    ${frontend.prompt && text(frontend.prompt, "prompt", { lines: 5, required: true })}
    ${has("documents") && text("Documents, one a line", "documents", { lines: 5, required: true })}
    ${
      has("voice") &&
      html`<div class="row filters">
        <${Text} name="Voice" value=${draft.voice} set=${(voice: string) => put({ voice })} />
        <${Select}
          name="Format"
          value=${draft.format}
          set=${(format: string) => put({ format })}
          of=${["wav", "mp3"]}
        />
      </div>`
    }
    <div class="row">
      ${has("stream") && check("Stream", "stream")}${has("tool") && check("Offer a tool", "tool")}
      ${has("picture") && html`<${Chosen} of=${PICTURE} value=${draft.picture} set=${(picture?: Attached) => put({ picture })} />`}
      ${has("sound") && html`<${Chosen} of=${SOUND} value=${draft.sound} set=${(sound?: Attached) => put({ sound })} />`}
      ${children}
    </div>`;
}

interface FileOf {
  readonly add: string;
  readonly leave: string;
  readonly icon: IconName;
  readonly accept: string;
}
const PICTURE: FileOf = {
  add: "Add a picture",
  leave: "Leave the picture out",
  icon: "image",
  accept: "image/png,image/jpeg,image/webp,image/gif",
};
const SOUND: FileOf = {
  add: "Add a sound",
  leave: "Leave the sound out",
  icon: "play",
  accept: "audio/*",
};

/** Of a file, at most. */
const MOST_BYTES = 4 * 1_048_576;

function Chosen({
  of,
  value,
  set,
}: {
  of: FileOf;
  value: Attached | undefined;
  set: (to?: Attached) => void;
}) {
  const chosen = async (event: Event) => {
    const field = event.target as HTMLInputElement;
    const file = field.files?.[0];
    field.value = "";
    if (!file) return;
    if (file.size > MOST_BYTES) return toast("A file here is at most 4 MiB.", "bad");
    set({ file, address: await dataAddress(file) });
  };
  if (value)
    return html`<button type="button" class="button small" onClick=${() => set()}>
      ${icon("close")}${of.leave}
    </button>`;
  return html`<label class="button small"
    >${icon(of.icon)}${of.add}<input
      class="unseen"
      type="file"
      accept=${of.accept}
      onChange=${chosen}
  /></label>`;
}
