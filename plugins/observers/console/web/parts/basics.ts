// Basic components: boxes, notes, empty states, badges, figures, fact lists, and copyable text.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import type { QueryState } from "../use-query.ts";
import type { CommandError } from "../admin-client.ts";
import { icon, type IconName } from "./icons.ts";
import { toast } from "./overlay.ts";

type Children = { children?: ComponentChildren };

export type Tone = "good" | "warn" | "bad" | "accent" | "";

export function Box({
  title,
  actions,
  flush = false,
  children,
}: Children & { title?: string; actions?: ComponentChildren; flush?: boolean }) {
  return html`<section class="box">
    ${(title || actions) && html`<header>${title && html`<h2>${title}</h2>`}${actions}</header>`}
    ${flush ? html`<div>${children}</div>` : html`<div class="in">${children}</div>`}
  </section>`;
}

export const Badge = ({
  tone = "",
  plain = false,
  children,
}: Children & { tone?: Tone; plain?: boolean }) =>
  html`<span class="mark ${tone} ${plain ? "plain" : ""}">${children}</span>`;

export const EmptyState = ({ of, children }: Children & { of: IconName }) =>
  html`<div class="empty">${icon(of)}${children}</div>`;

/** Placeholder while data is loading. */
export const LoadingPlaceholder = () =>
  html`<div class="wait" role="status">
    <span class="unseen">Loading</span><i></i><i></i><i></i>
  </div>`;

export const NoteBox = ({ tone = "", children }: Children & { tone?: Tone }) =>
  html`<div class="note-box ${tone}">
    ${icon(tone === "good" ? "check" : "warning")}
    <div class="grow">${children}</div>
  </div>`;

export const ErrorNote = ({ problem }: { problem: CommandError }) =>
  html`<div role="alert">
    <${NoteBox} tone="bad"
      ><p>${problem.message}</p>
      ${problem.hint && html`<p class="quiet">${problem.hint}</p>`}<//
    >
  </div>`;

/**
 * Shows a result, a placeholder while it is loading, or the error. After an error, the previous
 * result stays visible below the message. Shows nothing if the user may not run the command.
 */
export function QueryResult<T>({
  of,
  children,
}: {
  of: QueryState<T>;
  children: (value: T) => ComponentChildren;
}) {
  const trouble = of.error && html`<${ErrorNote} problem=${of.error} />`;
  if (of.isDenied) return null;
  if (of.value === undefined) return trouble ?? html`<${LoadingPlaceholder} />`;
  return html`${trouble}${children(of.value)}`;
}

export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly tone?: Tone | undefined;
  readonly href?: string | undefined;
  /** Tooltip with the exact or complete value. */
  readonly title?: string | undefined;
}

export const Figures = ({ of }: { of: readonly Figure[] }) =>
  html`<ul class="box figures">
    ${of.map(({ name, value, note, tone = "", href, title }) => {
      const inner = html`<div class="name">${name}</div>
        <div class="value" title=${title}>${value}</div>
        <div class="note ${tone}" title=${note}>${note}</div>`;
      return html`<li key=${name}>
        ${href ? html`<a class="figure" href=${href}>${inner}</a>` : html`<div class="figure">${inner}</div>`}
      </li>`;
    })}
  </ul>`;

/** A list of facts. Facts without a value are omitted. */
export const FactList = ({ of }: { of: readonly (readonly [string, ComponentChildren])[] }) =>
  html`<dl class="facts">
    ${of
      .filter(
        ([, value]) => value !== undefined && value !== null && value !== "" && value !== false,
      )
      .map(
        ([name, value]) =>
          html`<dt key=${name}>${name}</dt>
            <dd>${value}</dd>`,
      )}
  </dl>`;

export function CopyButton({ text, name = "Copy" }: { text: string; name?: string }) {
  const [done, set] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => {
        set(true);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => set(false), 1_500);
      },
      () => toast("The browser does not allow this page to copy. Select the text instead.", "bad"),
    );
  return html`<button type="button" class="button small" onClick=${copy}>
    ${icon(done ? "check" : "copy")}<span aria-live="polite">${done ? "Copied" : name}</span>
  </button>`;
}

/** A block of copyable code. `label` is its name for screen readers. */
export const Code = ({
  text,
  label,
  wrap = false,
}: {
  text: string;
  label: string;
  wrap?: boolean;
}) =>
  html`<div class="code">
    <pre class=${wrap ? "wrap" : ""} tabindex="0" role="region" aria-label=${label}>${text}</pre>
    <${CopyButton} text=${text} />
  </div>`;

/** Command that prints the same numbers. */
export const CommandLineHint = ({ line }: { line: string }) =>
  html`<p class="small quiet row">
    <span>The same on the command line:</span> <code class="break">${line}</code>
    <${CopyButton} text=${line} />
  </p>`;

/**
 * A bar for a share from 0 to 1. `held` is the reserved share, which is added to it. With a label,
 * the bar represents a budget and shows a warning from 80% on.
 */
export const UsageBar = ({
  of,
  held = 0,
  label,
}: {
  of: number;
  held?: number;
  label?: string;
}) => {
  const width = Math.min(1, Math.max(0, of));
  const more = Math.min(1 - width, Math.max(0, held));
  const tone = !label ? "" : of >= 1 ? "bad" : of >= 0.8 ? "warn" : "";
  const i = html`<i style=${{ width: `${width * 100}%` }}></i
    >${more > 0 && html`<i class="held" style=${{ left: `${width * 100}%`, width: `${more * 100}%` }}></i>`}`;
  return label
    ? html`<span
        class="meter ${tone}"
        role="meter"
        aria-valuemin="0"
        aria-valuemax="100"
        aria-valuenow=${Math.round(width * 100)}
        aria-label=${label}
        >${i}</span
      >`
    : html`<span class="meter ${tone}" aria-hidden="true">${i}</span>`;
};
