// Config page: the running config, the source of each value, and the effect of an edited text. The
// page never writes the file.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { useCommand, useQuery } from "../use-query.ts";
import { Checkbox, SegmentedControl, TextField } from "../parts/fields.ts";
import {
  Box,
  Code,
  EmptyState,
  FactList,
  Badge,
  NoteBox,
  CommandLineHint,
  QueryResult,
  ErrorNote,
  type Tone,
} from "../parts/basics.ts";
import { Table } from "../parts/table.ts";
import { useQueryParam } from "../location.ts";
import { isAllowed } from "../session.ts";
import { formatAgo, formatCount, formatDateTime } from "../format.ts";

interface ConfigValue {
  readonly path: string;
  readonly value: string | number | boolean | null;
  readonly source: "file" | "variable" | "other file" | "command line" | "default";
  readonly location?: string;
}
interface ConfigResponse {
  readonly file: string | null;
  readonly generation: number;
  readonly loadedAt: number;
  readonly shownValues: readonly ConfigValue[];
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
interface CheckResult {
  readonly ok: boolean;
  readonly problems: readonly Problem[];
  readonly changes: readonly {
    readonly path: string;
    readonly before?: ConfigValue["value"];
    readonly after?: ConfigValue["value"];
  }[];
  readonly omittedChanges: number;
  readonly restartKeys: readonly string[];
  readonly assumedVariables: readonly string[];
}
interface StatusResponse {
  readonly lastReload?: {
    readonly ok: boolean;
    readonly at: number;
    readonly trigger: string;
    readonly problems: readonly Problem[];
    readonly restartKeys?: readonly string[];
  };
}

const VIEWS = [
  ["values", "Values"],
  ["text", "As YAML"],
  ["check", "Check another"],
] as const;

export function ConfigResponse() {
  const [view, show] = useQueryParam("view", "values");
  const answer = useQuery<ConfigResponse>("config.show");
  const status = useQuery<StatusResponse>("status", {}, { intervalMs: 5_000 });
  return html` <div class="row">
      <${SegmentedControl}
        name="View"
        value=${view}
        set=${show}
        of=${VIEWS.filter(([name]) => name !== "check" || isAllowed("config.check"))}
      />
    </div>
    <${LastReload} of=${status.value?.lastReload} />
    <${QueryResult} of=${answer}
      >${(value: ConfigResponse) =>
        view === "check" && isAllowed("config.check")
          ? html`<${CheckText} config=${value} />`
          : view === "text"
            ? html`<${Box} title="Running config, with all defaults"
                  ><${Code} text=${value.text} label="Running config" /><//
                ><${CommandLineHint} line="tollgate print" />`
            : html`<${Values} config=${value} />`}<//
    >`;
}

function LastReload({ of }: { of: StatusResponse["lastReload"] }) {
  if (!of || of.ok) return null;
  return html`<${NoteBox} tone="bad"
    ><p>
      <strong class="strong">The last reload failed</strong>, ${formatAgo(of.at)}: the config before
      goes on.
      ${of.restartKeys && ` ${of.restartKeys.join(", ")} cannot change while the gateway runs. Restart it to apply them.`}
    </p>
    <${Problems} of=${of.problems}
  /><//>`;
}

const TONES: Readonly<Record<ConfigValue["source"], Tone>> = {
  file: "accent",
  variable: "good",
  "other file": "good",
  "command line": "warn",
  default: "",
};

function Values({ config }: { config: ConfigResponse }) {
  const [search, setSearch] = useQueryParam("q");
  const [all, setAll] = useQueryParam("defaults");
  const word = search.toLowerCase();
  const rows = config.shownValues.filter(
    ({ path, value, source }) =>
      (all !== "" || source !== "default") &&
      (path.toLowerCase().includes(word) || String(value).toLowerCase().includes(word)),
  );
  const defaults = config.shownValues.filter(({ source }) => source === "default").length;
  return html` <${FactList}
      of=${[
        ["File", html`<code>${config.file ?? "the built-in default"}</code>`],
        [
          "Generation",
          html`${config.generation}, loaded${" "}
            <span title=${formatDateTime(config.loadedAt)}>${formatAgo(config.loadedAt)}</span>`,
        ],
      ]}
    />
    <div class="filters">
      <${TextField}
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
      title=${`${formatCount(rows.length)} values`}
      actions=${html`<${Checkbox} name=${`with ${formatCount(defaults)} defaults`} value=${all !== ""} set=${(to: boolean) => setAll(to ? "yes" : "")} />`}
    >
      <${Table}
        label="Values"
        rows=${rows}
        rowId=${(row: ConfigValue) => row.path}
        initialRows=${200}
        empty=${html`<${EmptyState} of="search"><p>No value matches.</p><//>`}
        columns=${[
          {
            name: "Key",
            isRowHeader: true,
            sortKey: (row: ConfigValue) => row.path,
            render: (row: ConfigValue) => html`<span class="mono break">${row.path}</span>`,
          },
          {
            name: "Value",
            render: (row: ConfigValue) =>
              html`<span class="mono break">${String(row.value)}</span>`,
          },
          {
            name: "From",
            sortKey: (row: ConfigValue) => row.source,
            render: (row: ConfigValue) =>
              html`<${Badge} plain=${true} tone=${TONES[row.source]}>${row.source}<//>`,
          },
          {
            name: "Where",
            render: (row: ConfigValue) =>
              row.location
                ? html`<span class="small faint nowrap" title=${row.location}
                    >${formatLocation(row.location, config.file)}</span
                  >`
                : "",
          },
        ]}
      />
    <//>
    <p class="small faint">Secrets are hidden. Variables are shown by name, as in the file.</p>
    <${CommandLineHint} line=${`tollgate config show${all ? "" : " --no-defaults"}`} />`;
}

const formatLocation = (at: string, file: string | null): string =>
  file !== null && at.startsWith(`${file}:`)
    ? `line ${at.slice(file.length + 1).split(":")[0]}`
    : at.slice(at.lastIndexOf("/") + 1);

function CheckText({ config }: { config: ConfigResponse }) {
  const [text, write] = useState("");
  const check = useCommand<CheckResult>("config.check", { changes: false });
  const submit = (event: Event) => {
    event.preventDefault();
    void check.run({ text });
  };
  return html` <${Box} title="Another gateway.yaml">
      <form class="form" onSubmit=${submit}>
        <${TextField}
          name="Text of the file"
          rows=${16}
          value=${text}
          set=${write}
          required=${true}
          placeholder="frontends: [chat-completions, messages]"
          hint="The text is checked against the running config. No file is written, no new plugin is loaded, and no secret is read."
        />
        <footer>
          <button type="button" class="button" onClick=${() => write(config.text)}>
            Start from the running config
          </button>
          <button
            type="submit"
            class="button main"
            disabled=${check.isRunning || text.trim() === ""}
          >
            ${check.isRunning ? "Checking…" : "Check"}
          </button>
        </footer>
      </form>
    <//>
    <div aria-live="polite" class="stack">
      ${check.error && html`<${ErrorNote} problem=${check.error} />`}
      ${check.value && html`<${CheckReport} of=${check.value} />`}
    </div>`;
}

function CheckReport({ of }: { of: CheckResult }) {
  const { ok, problems, changes, omittedChanges, restartKeys, assumedVariables } = of;
  const errors = problems.filter(({ severity }) => severity === "error").length;
  return html` <${NoteBox} tone=${ok ? "good" : "bad"}
      ><p>
        ${ok ? `The file is valid. ${changes.length === 0 ? "It changes no visible value." : `${formatCount(changes.length + omittedChanges)} ${changes.length + omittedChanges === 1 ? "value changes" : "values change"}.`}` : `${formatCount(errors)} ${errors === 1 ? "error" : "errors"}: a reload would reject it.`}
      </p>
      ${restartKeys.length > 0 && html`<p class="warn">${restartKeys.join(", ")} cannot change while the gateway runs: a reload would reject it. Restart the gateway to apply it.</p>`}
      ${assumedVariables.length > 0 && html`<p class="small quiet">Assumed to be set on the gateway's machine, not checked: ${assumedVariables.join(", ")}.</p>`}<//
    >
    ${problems.length > 0 && html`<${Box} title="Problems"><${Problems} of=${problems} /><//>`}
    ${
      changes.length > 0 &&
      html`<${Box}
        title="Changes"
        actions=${html`<span class="small faint">secrets are not compared</span>`}
      >
        <${Code}
          label="Changes"
          wrap=${true}
          text=${changes
            .map(({ path, before, after }) =>
              [
                ...(before === undefined ? [] : [`- ${path}: ${before}`]),
                ...(after === undefined ? [] : [`+ ${path}: ${after}`]),
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
          <${Badge}
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
