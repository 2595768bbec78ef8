// Overlays: a drawer for details, a dialog, and a button that asks before it runs. Drawer and dialog
// use the native <dialog>, which traps the keyboard focus, closes with Escape, and restores the focus.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { icon } from "./icons.ts";

export interface OverlayProps {
  readonly title: ComponentChildren;
  readonly close: () => void;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

function Overlay({
  title,
  close,
  children,
  actions,
  kind,
}: OverlayProps & { kind: "drawer" | "dialog" }) {
  const own = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = own.current!;
    if (!dialog.open) dialog.showModal();
    return () => dialog.close();
  }, []);
  const outside = (event: MouseEvent) => {
    if (event.target === own.current && kind === "drawer") close();
  };
  const cancel = (event: Event) => {
    event.preventDefault();
    close();
  };
  return html`<dialog
    ref=${own}
    class=${kind}
    aria-labelledby=${id}
    onCancel=${cancel}
    onMouseDown=${outside}
  >
    <header>
      <h2 class="grow break" id=${id} tabindex="-1">${title}</h2>
      ${actions}<button type="button" class="button bare" onClick=${close} aria-label="Close">
        ${icon("close")}
      </button>
    </header>
    <div class="in">${children}</div>
  </dialog>`;
}

export const Drawer = (of: OverlayProps) => html`<${Overlay} kind="drawer" ...${of} />`;
/** @public Used by pages that ask for confirmation before a change. */
export const Dialog = (of: OverlayProps) => html`<${Overlay} kind="dialog" ...${of} />`;

/** A button that runs after a second click. `what` describes it to screen readers. */
export function ConfirmButton({
  name,
  what,
  run,
}: {
  name: string;
  what: string;
  run: () => void;
}) {
  const [sure, set] = useState(false);
  const yes = () => {
    set(false);
    run();
  };
  return sure
    ? html`<span class="row"
        ><button type="button" class="button small danger" aria-description=${what} onClick=${yes}>
          Yes</button
        ><button type="button" class="button small" onClick=${() => set(false)}>No</button></span
      >`
    : html`<button
        type="button"
        class="button small"
        aria-description=${what}
        onClick=${() => set(true)}
      >
        ${name}
      </button>`;
}

// Short messages about completed actions, shown briefly and read out by screen readers.

interface ToastMessage {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
}

const SHOWN_MS = 6_000;
let lastId = 0;
let visibleToasts: readonly ToastMessage[] = [];
let onChange: (() => void) | undefined;

export function toast(text: string, tone: ToastMessage["tone"] = "good"): void {
  const message = { id: ++lastId, text, tone };
  visibleToasts = [...visibleToasts.slice(-3), message];
  onChange?.();
  setTimeout(() => {
    visibleToasts = visibleToasts.filter((each) => each !== message);
    onChange?.();
  }, SHOWN_MS);
}

export function Toasts() {
  const [, again] = useState(0);
  useEffect(() => {
    onChange = () => again((n) => n + 1);
    return () => (onChange = undefined);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${visibleToasts.map(({ id, text, tone }) => html`<div class="toast" key=${id}><span class=${tone}>${icon(tone === "good" ? "check" : "warning")}</span><span>${text}</span></div>`)}
  </div>`;
}
