// The config: what runs, of each value where it comes from, and what another text would change. Nothing here writes the file.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useAct } from "../act.ts";
import { useAsk } from "../data.ts";
import { Check, Choice, Text } from "../parts/fields.ts";
import {
  Box,
  Code,
  Empty,
  Facts,
  Mark,
  NoteBox,
  SameAs,
  Shown,
  Trouble,
  type Tone,
} from "../parts/plain.ts";
import { Table } from "../parts/table.ts";
import { useWord } from "../place.ts";
import { may } from "../rights.ts";
import { ago, count, moment } from "../words.ts";

interface Value {
  readonly path: string;
  readonly value: string | number | boolean | null;
  readonly from: "file" | "variable" | "other file" | "command line" | "default";
  readonly at?: string;
}
interface Config {
  readonly file: string | null;
  readonly generation: number;
  readonly loadedAt: number;
  readonly values: readonly Value[];
  readonly text: string;
}
interface Problem {
  readonly id: string;
  readonly severity: "error" | "warning" | "note";
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  readonly frame?: string;
}
interface Checked {
  readonly ok: boolean;
  readonly problems: readonly Problem[];
  readonly changes: readonly {
    readonly path: string;
    readonly was?: Value["value"];
    readonly becomes?: Value["value"];
  }[];
  readonly more: number;
  readonly restart: readonly string[];
  readonly assumed: readonly string[];
}
interface StatusOf {
  readonly lastReload?: {
    readonly ok: boolean;
    readonly at: number;
    readonly why: string;
    readonly problems: readonly Problem[];
    readonly refused?: readonly string[];
  };
}

const VIEWS = [
  ["values", "Values"],
  ["text", "As YAML"],
  ["check", "Check another"],
] as const;

export function Config() {
  const [view, show] = useWord("view", "values");
  const answer = useAsk<Config>("config.show");
  const status = useAsk<StatusOf>("status", {}, { every: 5_000 });
  return html` <div class="row">
      <${Choice}
        name="What is shown"
        value=${view}
        set=${show}
        of=${VIEWS.filter(([name]) => name !== "check" || may("config.check"))}
      />
    </div>
    <${LastReload} of=${status.value?.lastReload} />
    <${Shown} of=${answer}
      >${(value: Config) =>
        view === "check" && may("config.check")
          ? html`<${CheckText} config=${value} />`
          : view === "text"
            ? html`<${Box} title="What runs, with every default"
                  ><${Code} text=${value.text} label="The config that runs" /><//
                ><${SameAs} line="tollgate print" />`
            : html`<${Values} config=${value} />`}<//
    >`;
}

function LastReload({ of }: { of: StatusOf["lastReload"] }) {
  if (!of || of.ok) return null;
  return html`<${NoteBox} tone="bad"
    ><p>
      <strong class="strong">The last reload was refused</strong>, ${ago(of.at)}: the config before
      goes on.
      ${of.refused && ` ${of.refused.join(", ")} cannot change while running; a restart takes them.`}
    </p>
    <${Problems} of=${of.problems}
  /><//>`;
}

const TONES: Readonly<Record<Value["from"], Tone>> = {
  file: "accent",
  variable: "good",
  "other file": "good",
  "command line": "warn",
  default: "",
};

function Values({ config }: { config: Config }) {
  const [search, setSearch] = useWord("q");
  const [all, setAll] = useWord("defaults");
  const word = search.toLowerCase();
  const rows = config.values.filter(
    ({ path, value, from }) =>
      (all !== "" || from !== "default") &&
      (path.toLowerCase().includes(word) || String(value).toLowerCase().includes(word)),
  );
  const defaults = config.values.filter(({ from }) => from === "default").length;
  return html` <${Facts}
      of=${[
        ["File", html`<code>${config.file ?? "the default that ships with the package"}</code>`],
        [
          "Reading",
          html`number ${config.generation}, taken${" "}
            <span title=${moment(config.loadedAt)}>${ago(config.loadedAt)}</span>`,
        ],
      ]}
    />
    <div class="filters">
      <${Text}
        name="Search"
        type="search"
        wide=${true}
        value=${search}
        set=${setSearch}
        placeholder="listen.port, openai, …"
      />
    </div>
    <${Box}
      flush=${true}
      title=${`${count(rows.length)} values`}
      actions=${html`<${Check} name=${`with ${count(defaults)} defaults`} value=${all !== ""} set=${(to: boolean) => setAll(to ? "yes" : "")} />`}
    >
      <${Table}
        label="Values"
        rows=${rows}
        id=${(row: Value) => row.path}
        most=${200}
        empty=${html`<${Empty} of="search"><p>No value is like that.</p><//>`}
        columns=${[
          {
            name: "Key",
            head: true,
            by: (row: Value) => row.path,
            of: (row: Value) => html`<span class="mono break">${row.path}</span>`,
          },
          {
            name: "Value",
            of: (row: Value) => html`<span class="mono break">${String(row.value)}</span>`,
          },
          {
            name: "From",
            by: (row: Value) => row.from,
            of: (row: Value) =>
              html`<${Mark} plain=${true} tone=${TONES[row.from]}>${row.from}<//>`,
          },
          {
            name: "Where",
            of: (row: Value) =>
              row.at
                ? html`<span class="small faint nowrap" title=${row.at}
                    >${placeOf(row.at, config.file)}</span
                  >`
                : "",
          },
        ]}
      />
    <//>
    <p class="small faint">Secrets are hidden; a variable is shown as the file names it.</p>
    <${SameAs} line=${`tollgate config show${all ? "" : " --said"}`} />`;
}

const placeOf = (at: string, file: string | null): string =>
  file !== null && at.startsWith(`${file}:`)
    ? `line ${at.slice(file.length + 1).split(":")[0]}`
    : at.slice(at.lastIndexOf("/") + 1);

function CheckText({ config }: { config: Config }) {
  const [text, write] = useState("");
  const check = useAct<Checked>("config.check", { changes: false });
  const submit = (event: Event) => {
    event.preventDefault();
    void check.run({ text });
  };
  return html` <${Box} title="Another gateway.yaml">
      <form class="form" onSubmit=${submit}>
        <${Text}
          name="Its text"
          lines=${16}
          value=${text}
          set=${write}
          required=${true}
          placeholder="frontends: [chat-completions, messages]"
          hint="It is checked against what runs and goes nowhere: no file is written, no plugin is loaded that is not mounted, no secret is looked at."
        />
        <footer>
          <button type="button" class="button" onClick=${() => write(config.text)}>
            Start from what runs
          </button>
          <button type="submit" class="button main" disabled=${check.busy || text.trim() === ""}>
            ${check.busy ? "Checking…" : "Check"}
          </button>
        </footer>
      </form>
    <//>
    <div aria-live="polite" class="stack">
      ${check.problem && html`<${Trouble} problem=${check.problem} />`}
      ${check.value && html`<${Found} of=${check.value} />`}
    </div>`;
}

function Found({ of }: { of: Checked }) {
  const { ok, problems, changes, more, restart, assumed } = of;
  const errors = problems.filter(({ severity }) => severity === "error").length;
  return html` <${NoteBox} tone=${ok ? "good" : "bad"}
      ><p>
        ${ok ? `It would be taken. ${changes.length === 0 ? "It changes nothing that may be shown." : `${count(changes.length + more)} values change.`}` : `${count(errors)} ${errors === 1 ? "error" : "errors"}: a reload would refuse it.`}
      </p>
      ${restart.length > 0 && html`<p class="warn">${restart.join(", ")} cannot change while running: a reload would refuse it, a restart takes it.</p>`}
      ${assumed.length > 0 && html`<p class="small quiet">Set on the machine, and not looked at: ${assumed.join(", ")}.</p>`}<//
    >
    ${problems.length > 0 && html`<${Box} title="Problems"><${Problems} of=${problems} /><//>`}
    ${
      changes.length > 0 &&
      html`<${Box}
        title="What changes"
        actions=${html`<span class="small faint">secrets are not compared</span>`}
      >
        <${Code}
          label="Changes"
          wrap=${true}
          text=${changes
            .map(({ path, was, becomes }) =>
              [
                ...(was === undefined ? [] : [`- ${path}: ${was}`]),
                ...(becomes === undefined ? [] : [`+ ${path}: ${becomes}`]),
              ].join("\n"),
            )
            .join("\n")}
      /><//>`
    }`;
}

const Problems = ({ of }: { of: readonly Problem[] }) =>
  html`<ul class="todo">
    ${of.map(
      (each) =>
        html`<li key=${`${each.id} ${each.line} ${each.column} ${each.message}`}>
          <${Mark}
            tone=${each.severity === "error" ? "bad" : each.severity === "warning" ? "warn" : ""}
            >${each.severity}<//
          >
          <div class="grow">
            <strong class="strong">${each.path || "the file"}</strong>${" "}
            ${each.line > 0 && html`<span class="faint small">line ${each.line}, column ${each.column}</span>`}
            <div>${each.message}</div>
            ${each.hint && html`<div class="quiet">${each.hint}</div>`}
            ${each.frame && html`<pre class="small quiet scroll" tabindex="0" role="region" aria-label=${`Line ${each.line}`}>${each.frame}</pre>`}
          </div>
        </li>`,
    )}
  </ul>`;
