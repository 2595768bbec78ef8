// The form fields of a draft that its frontend supports.
import type { ComponentChildren } from "preact";
import { html } from "htm/preact";
import { Checkbox, Select, TextField } from "../../parts/fields.ts";
import { icon, type IconName } from "../../parts/icons.ts";
import { toast } from "../../parts/toasts.ts";
import type { AttachedFile, Draft, Field, PlaygroundFrontend } from "./playground-frontend.ts";
import { toDataUrl } from "./playground-send.ts";

interface DraftFieldsProps {
  readonly frontend: PlaygroundFrontend;
  readonly draft: Draft;
  readonly put: (part: Partial<Draft>) => void;
  /** Fields that every frontend has. */
  readonly children: ComponentChildren;
}

export function DraftFields({ frontend, draft, put, children }: DraftFieldsProps) {
  const has = (field: Field) => frontend.fields.includes(field);
  const text = (name: string, field: "system" | "prompt" | "documents", more: object) =>
    html`<${TextField}
      name=${name}
      value=${draft[field]}
      set=${(to: string) => put({ [field]: to })}
      ...${more}
    />`;
  const check = (name: string, field: "stream" | "tool") =>
    html`<${Checkbox}
      name=${name}
      value=${draft[field]}
      set=${(to: boolean) => put({ [field]: to })}
    />`;
  return html`${has("system") && text("System", "system", { placeholder: "none" })}
    ${frontend.promptLabel && text(frontend.promptLabel, "prompt", { rows: 5, required: true })}
    ${has("documents") && text("Documents, one a line", "documents", { rows: 5, required: true })}
    ${
      has("voice") &&
      html`<div class="row filters">
        <${TextField} name="Voice" value=${draft.voice} set=${(voice: string) => put({ voice })} />
        <${Select}
          name="Format"
          value=${draft.format}
          set=${(format: string) => put({ format })}
          options=${["wav", "mp3"]}
        />
      </div>`
    }
    <div class="row">
      ${has("stream") && check("Stream", "stream")}${has("tool") && check("Offer a tool", "tool")}
      ${has("image") && html`<${FileField} of=${IMAGE_FILE} value=${draft.image} set=${(image?: AttachedFile) => put({ image })} />`}
      ${has("audio") && html`<${FileField} of=${AUDIO_FILE} value=${draft.audio} set=${(audio?: AttachedFile) => put({ audio })} />`}
      ${children}
    </div>`;
}

interface FileFieldOptions {
  readonly addLabel: string;
  readonly removeLabel: string;
  readonly icon: IconName;
  readonly accept: string;
}
const IMAGE_FILE: FileFieldOptions = {
  addLabel: "Add an image",
  removeLabel: "Remove the image",
  icon: "image",
  accept: "image/png,image/jpeg,image/webp,image/gif",
};
const AUDIO_FILE: FileFieldOptions = {
  addLabel: "Add an audio file",
  removeLabel: "Remove the audio file",
  icon: "play",
  accept: "audio/*",
};

/** Maximum size of a file in bytes. */
const MAX_FILE_BYTES = 4 * 1_048_576;

function FileField({
  of,
  value,
  set,
}: {
  of: FileFieldOptions;
  value: AttachedFile | undefined;
  set: (to?: AttachedFile) => void;
}) {
  const chosen = async (event: Event) => {
    const field = event.target as HTMLInputElement;
    const file = field.files?.[0];
    field.value = "";
    if (!file) return;
    if (file.size > MAX_FILE_BYTES)
      return toast("The file is too large. The maximum is 4 MiB.", "bad");
    set({ file, dataUrl: await toDataUrl(file) });
  };
  if (value)
    return html`<button type="button" class="button small" onClick=${() => set()}>
      ${icon("close")}${of.removeLabel}
    </button>`;
  return html`<label class="button small"
    >${icon(of.icon)}${of.addLabel}<input
      class="unseen"
      type="file"
      accept=${of.accept}
      onChange=${chosen}
  /></label>`;
}
