// Form fields with label, error message, and keyboard support.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { html } from "htm/preact";

interface FieldProps {
  readonly name: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly wide?: boolean;
}

export interface TextFieldProps extends FieldProps {
  readonly value: string;
  readonly set: (to: string) => void;
  readonly type?: "text" | "password" | "number" | "search" | "date" | "datetime-local";
  readonly placeholder?: string;
  readonly options?: readonly string[];
  readonly rows?: number;
  readonly required?: boolean;
  readonly secret?: boolean;
}

export function TextField(of: TextFieldProps) {
  const id = useId();
  const { name, hint, error, wide, value, set, type = "text", placeholder, options, rows } = of;
  const about = hint || error ? `${id}-about` : undefined;
  const common = {
    id,
    value,
    placeholder,
    required: of.required,
    spellcheck: false,
    autocomplete: "off",
    autocapitalize: "off",
    "aria-invalid": error ? "true" : undefined,
    "aria-describedby": about,
    onInput: (event: InputEvent) => set((event.target as HTMLInputElement).value),
  };
  return html`<div class="field ${wide ? "wide" : ""}">
    <label class="name" for=${id}>${name}</label>
    ${
      rows
        ? html`<textarea ...${common} rows=${rows}></textarea>`
        : html`<input
            ...${common}
            type=${of.secret ? "password" : type}
            list=${options ? `${id}-list` : undefined}
          />`
    }
    ${options && html`<datalist id=${`${id}-list`}>${options.map((each) => html`<option value=${each} key=${each} />`)}</datalist>`}
    ${about && html`<span id=${about} class=${error ? "wrong" : "hint"}>${error ?? hint}</span>`}
  </div>`;
}

export interface SelectProps extends FieldProps {
  readonly value: string;
  readonly set: (to: string) => void;
  readonly options: readonly (string | readonly [value: string, label: string])[];
  /** Whether the label is visible only to screen readers. */
  readonly hidesLabel?: boolean;
}

export function Select({ name, hint, wide, value, set, options, hidesLabel }: SelectProps) {
  const id = useId();
  const field = html`<select
    id=${id}
    value=${value}
    onChange=${(event: Event) => set((event.target as HTMLSelectElement).value)}
  >
    ${options.map((each) => {
      const [word, label] = typeof each === "string" ? [each, each] : each;
      return html`<option value=${word} selected=${word === value} key=${word}>${label}</option>`;
    })}
  </select>`;
  if (hidesLabel) return html`<label class="unseen" for=${id}>${name}</label>${field}`;
  return html`<div class="field ${wide ? "wide" : ""}">
    <label class="name" for=${id}>${name}</label
    >${field}${hint && html`<span class="hint">${hint}</span>`}
  </div>`;
}

export const Checkbox = ({
  name,
  value,
  set,
}: {
  name: string;
  value: boolean;
  set: (to: boolean) => void;
}) =>
  html`<label class="check"
    ><input
      type="checkbox"
      checked=${value}
      onChange=${(event: Event) => set((event.target as HTMLInputElement).checked)}
    />${name}</label
  >`;

/** A choice of one among a few values. */
export const SegmentedControl = ({
  name,
  value,
  set,
  of,
}: {
  name: string;
  value: string;
  set: (to: string) => void;
  of: readonly (readonly [value: string, label: ComponentChildren])[];
}) =>
  html`<div class="choice" role="group" aria-label=${name}>
    ${of.map(([word, label]) => html`<button type="button" key=${word} aria-pressed=${word === value ? "true" : "false"} onClick=${() => set(word)}>${label}</button>`)}
  </div>`;
