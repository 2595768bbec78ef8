// Shows a model's response: text, reasoning, tool calls, images, embeddings, rankings, moderation
// results, audio, usage, and duration.
import { html } from "htm/preact";
import { Box, Code, EmptyState, FactList, Badge, NoteBox } from "../../parts/basics.ts";
import { Table, type Column } from "../../parts/table.ts";
import { formatDuration } from "../../format.ts";
import {
  type ResponseParts,
  nonEmptyLines,
  type AttachedFile,
  type Draft,
  type Field,
  type PlaygroundFrontend,
} from "./playground-frontend.ts";
import { type PlaygroundExchange, toDataUrl } from "./playground-send.ts";
import type { ComponentChildren } from "preact";
import { Checkbox, Select, TextField } from "../../parts/fields.ts";
import { icon, type IconName } from "../../parts/icons.ts";
import { toast } from "../../parts/overlay.ts";

/**
 * PNG, JPEG, and WebP by the first bytes of their base64. Image URLs are not fetched, because the
 * page sends requests only to its own gateway.
 */
const IMAGE_TYPES: readonly (readonly [begin: string, type: string])[] = [
  ["iVBOR", "png"],
  ["/9j/", "jpeg"],
  ["UklGR", "webp"],
];
const imageUrl = (picture: string): string | undefined => {
  const type = IMAGE_TYPES.find(([begin]) => picture.startsWith(begin))?.[1];
  return type && `data:image/${type};base64,${picture}`;
};

/** Number of vector elements to show. */
const VECTOR_PREVIEW = 6;

const Embeddings = ({ of }: { of: ResponseParts["embeddings"] }) =>
  of.map(
    (vector, i) =>
      html`<p key=${i}>
        <span class="quiet small">${i + 1}. ${vector.length} numbers</span><br />
        <code class="break"
          >${vector
            .slice(0, VECTOR_PREVIEW)
            .map((number) => number.toPrecision(4))
            .join(", ")}${vector.length > VECTOR_PREVIEW && ", …"}</code
        >
      </p>`,
  );

type Ranked = ResponseParts["ranking"][number];
const Ranking = ({ of, documents }: { of: ResponseParts["ranking"]; documents: string }) => {
  const lines = nonEmptyLines(documents);
  return html`<ol class="ranked">
    ${of.map(
      ({ index, score }: Ranked) =>
        html`<li key=${index}>
          ${lines[index] ?? `Document ${index + 1}`}
          <span class="quiet small">${score.toFixed(4)}</span>
        </li>`,
    )}
  </ol>`;
};

type ModerationScore = ResponseParts["moderation"][number];
const MODERATION_COLUMNS: readonly Column<ModerationScore>[] = [
  { name: "Category", isRowHeader: true, sortKey: ({ name }) => name, render: ({ name }) => name },
  {
    name: "Score",
    isNumber: true,
    sortKey: ({ score }) => score,
    render: ({ score }) => score.toFixed(3),
  },
  {
    name: "Flagged",
    sortKey: ({ flagged }) => Number(flagged),
    render: ({ flagged }) => (flagged ? html`<${Badge} tone="bad">flagged<//>` : "no"),
  },
];

export function ResponseView({ sent }: { sent: PlaygroundExchange | undefined }) {
  if (!sent)
    return html`<${Box} title="Answer"
      ><${EmptyState} of="playground"
        ><p>
          The request is sent like that of any client: with your key, its limits, and a ledger row.
          The response is shown here and not stored.
        </p><//
      ><//
    >`;
  const { response, status, totalMs, firstByteMs } = sent;
  const busy = totalMs === undefined && !sent.error;
  const marks = html`<span class="row"
    >${status !== undefined && html`<${Badge} tone=${status < 400 ? "good" : "bad"}>${status}<//>`}${busy && html`<${Badge} tone="accent">answering<//>`}</span
  >`;
  return html`<${Box} title="Answer" actions=${marks}>
    <div class="stack">
      ${response.error && html`<${NoteBox} tone="bad"><p>${response.error}</p><//>`}
      ${
        response.reasoning &&
        html`<details>
          <summary class="small quiet">Thought</summary>
          <p class="answer quiet small">${response.reasoning}</p>
        </details>`
      }
      <div
        class="answer ${busy ? "streaming" : ""}"
        aria-live="polite"
        aria-busy=${busy ? "true" : "false"}
        tabindex="0"
        role="region"
        aria-label="Answer"
      >
        ${response.text}${response.images.map((picture, i) => {
          const address = imageUrl(picture);
          return address
            ? html`<img key=${i} src=${address} alt=${`Picture ${i + 1} of the answer`} />`
            : html`<p class="small break" key=${i}>Image at ${picture.slice(0, 300)}</p>`;
        })}
        ${response.embeddings.length > 0 && html`<${Embeddings} of=${response.embeddings} />`}
        ${response.ranking.length > 0 && html`<${Ranking} of=${response.ranking} documents=${sent.documents} />`}
        ${response.audioUrl && html`<audio controls src=${response.audioUrl} aria-label="Audio of the response"></audio>`}
      </div>
      ${response.moderation.length > 0 && html`<${Table} label="Result" columns=${MODERATION_COLUMNS} rows=${response.moderation} rowId=${({ name }: ModerationScore) => name} />`}
      ${response.toolCalls && html`<${Code} wrap=${true} label="Tool calls" text=${response.toolCalls} />`}
      <${FactList}
        of=${[
          ["Response headers", firstByteMs === undefined ? undefined : formatDuration(firstByteMs)],
          ["Whole", totalMs === undefined ? undefined : formatDuration(totalMs)],
          [
            "Used",
            response.usage
              ? html`<code class="break">${JSON.stringify(response.usage)}</code>`
              : undefined,
          ],
          ["Privacy", sent.headers["service-zdr"]],
        ]}
      />
    </div>
  <//>`;
}

// The form fields of a draft that its frontend supports.

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
