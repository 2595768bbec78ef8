// Short messages about completed actions, shown briefly and read out by screen readers.
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { icon } from "./icons.ts";

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
  const said = { id: ++lastId, text, tone };
  visibleToasts = [...visibleToasts.slice(-3), said];
  onChange?.();
  setTimeout(() => {
    visibleToasts = visibleToasts.filter((each) => each !== said);
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
