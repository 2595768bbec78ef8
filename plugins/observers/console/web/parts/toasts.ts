// What has been done, said for a moment and read out.
import { useEffect, useState } from "preact/hooks";
import { html } from "htm/preact";
import { icon } from "./icons.ts";

interface Said {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
}

const SHOWN_MS = 6_000;
let last = 0;
let shown: readonly Said[] = [];
let hear: (() => void) | undefined;

export function toast(text: string, tone: Said["tone"] = "good"): void {
  const said = { id: ++last, text, tone };
  shown = [...shown.slice(-3), said];
  hear?.();
  setTimeout(() => {
    shown = shown.filter((each) => each !== said);
    hear?.();
  }, SHOWN_MS);
}

export function Toasts() {
  const [, again] = useState(0);
  useEffect(() => {
    hear = () => again((n) => n + 1);
    return () => (hear = undefined);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(({ id, text, tone }) => html`<div class="toast" key=${id}><span class=${tone}>${icon(tone === "good" ? "check" : "warning")}</span><span>${text}</span></div>`)}
  </div>`;
}
