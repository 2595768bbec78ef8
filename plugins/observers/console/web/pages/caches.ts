// Prompt caches page: the share of the input that providers read from their caches, by key, model,
// or session.
import { html } from "htm/preact";
import { useQuery } from "../use-query.ts";
import { Select } from "../parts/fields.ts";
import { Box, CommandLineHint, EmptyState, Figures, QueryResult } from "../parts/basics.ts";
import { Table, type Column } from "../parts/table.ts";
import { useQueryParam } from "../location.ts";
import { TimeRangeChoice, useTimeRange } from "../time-range.ts";
import { formatCompact, formatCount } from "../format.ts";

interface CacheUse {
  readonly name: string;
  readonly calls: number;
  readonly input: number;
  readonly read: number;
  readonly written: number;
  readonly unread: number;
  /** Calls that changed what their conversation sent before. */
  readonly changed: number;
  /** The most frequent places of the first difference. */
  readonly differences: readonly { readonly place: string; readonly calls: number }[];
}
interface CacheReport {
  readonly rows: readonly CacheUse[];
  readonly keyNames: Readonly<Record<string, string>>;
}

/** Groups of the table. Sessions are the members of the scope with this name. */
const GROUPINGS = ["key", "account", "provider", "model", "credential", "frontend", "session"];

export function CachesPage() {
  const [span, setSpan] = useTimeRange("7d");
  const [by, setBy] = useQueryParam("by", "key");
  const group = by === "session" ? { scope: by } : { by };
  const { from, to } = span;
  const report = useQuery<CacheReport>(
    "ledger.caches",
    { ...group, from, to },
    { intervalMs: 10_000 },
  );
  return html`
    <div class="row">
      <${Select}
        hidesLabel=${true}
        name="By"
        value=${by}
        set=${setBy}
        options=${GROUPINGS.map((name) => [name, `by ${name}`] as const)}
      />
      <span class="grow"></span><${TimeRangeChoice} span=${span} set=${setSpan} />
    </div>
    <${QueryResult} of=${report}
      >${(value: CacheReport) => html`<${CacheTable} of=${value} by=${by} />`}<//
    >
    <${CommandLineHint}
      line=${`tollgate caches ${by === "session" ? "--scope session" : `--by ${by}`}`}
    />
  `;
}

const shareOf = ({ read, input }: Pick<CacheUse, "read" | "input">): number =>
  input === 0 ? 0 : (read / input) * 100;
const formatShare = (share: number): string => `${share.toFixed(1)}%`;

const number = (name: string, value: (row: CacheUse) => number): Column<CacheUse> => ({
  name,
  isNumber: true,
  sortKey: value,
  render: (row) => formatCount(value(row)),
});

function CacheTable({ of: { rows, keyNames }, by }: { of: CacheReport; by: string }) {
  if (rows.length === 0) return html`<${EmptyState} of="usage"><p>No usage in this period.</p><//>`;
  const sum = (value: (row: CacheUse) => number) => rows.reduce((all, row) => all + value(row), 0);
  const nameOf = ({ name }: CacheUse) => keyNames[name] ?? name;
  const columns: readonly Column<CacheUse>[] = [
    { name: by, isRowHeader: true, sortKey: nameOf, render: (row) => nameOf(row) || "none" },
    number("calls", ({ calls }) => calls),
    number("input", ({ input }) => input),
    number("cached", ({ read }) => read),
    { name: "share", isNumber: true, sortKey: shareOf, render: (row) => formatShare(shareOf(row)) },
    number("written", ({ written }) => written),
    number("never read", ({ unread }) => unread),
    number("changed", ({ changed }) => changed),
    {
      name: "first difference",
      sortKey: ({ differences }) => differences[0]?.place ?? "",
      render: ({ differences }) =>
        differences.map(({ place, calls }) => `${place} (${formatCount(calls)})`).join(", "),
    },
  ];
  const all = { read: sum(({ read }) => read), input: sum(({ input }) => input) };
  return html`<${Figures}
      of=${[
        { name: "Cached share", value: formatShare(shareOf(all)) },
        { name: "Cached tokens", value: formatCompact(all.read) },
        { name: "Written, never read", value: formatCompact(sum(({ unread }) => unread)) },
        { name: "Calls with a changed prefix", value: formatCompact(sum((row) => row.changed)) },
      ]}
    />
    <${Box} title="Prompt caches" flush=${true}>
      <${Table}
        label="Prompt caches"
        columns=${columns}
        rows=${rows}
        rowId=${({ name }: CacheUse) => name}
      />
    <//>`;
}
