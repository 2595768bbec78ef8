// Bills page: compares the ledger with the bill of a provider, and shows the cause of each
// difference. The observer `reconcile` must be mounted.
import { useState } from "preact/hooks";
import { html } from "htm/preact";
import { useCommand, useQuery } from "../use-query.ts";
import { Select, TextField } from "../parts/fields.ts";
import {
  Box,
  CommandLineHint,
  EmptyState,
  ErrorNote,
  Figures,
  NoteBox,
  QueryResult,
} from "../parts/basics.ts";
import { Table, type Column } from "../parts/table.ts";
import { formatCount } from "../format.ts";

interface Difference {
  readonly cause: string;
  readonly usd: string;
  readonly calls: number;
  readonly attempts: readonly string[];
}
interface BillGroup {
  readonly day: string;
  readonly model: string | null;
  readonly credential: string | null;
  readonly projects: readonly string[];
  readonly keys: readonly string[];
  readonly calls: number;
  readonly oursUsd: string;
  readonly theirsUsd: string;
  readonly differences: readonly Difference[];
}
interface ComparedBill {
  readonly oursUsd: string;
  readonly theirsUsd: string;
  readonly differenceUsd: string;
  readonly causes: Readonly<Record<string, string>>;
  readonly groups: readonly BillGroup[];
  readonly corrections: readonly unknown[];
}

const CAUSES: Readonly<Record<string, string>> = {
  estimated: "Calls without a complete usage report",
  recovered: "Calls that a crash left open",
  unpriced: "Calls that had no price",
  pruned: "Calls whose rows were replaced by rollups",
  failed: "Failed calls that the provider billed",
  price: "Calls that the provider billed at another rate",
  outside: "Usage that did not pass the gateway",
  unbilled: "Usage that the provider did not bill",
  uncounted: "Charges without a count",
  other_charge: "Taxes, credits, and other charges",
  rounding: "Fractions of a nano-dollar",
};

export const BILL_COMMANDS = {
  list: "observers.reconcile/bills",
  compare: "observers.reconcile/compare",
} as const;

export function BillsPage() {
  const bills = useQuery<{ providers: readonly string[] }>(BILL_COMMANDS.list);
  return html`<${QueryResult} of=${bills}
    >${({ providers }: { providers: readonly string[] }) => html`<${BillForm} providers=${providers} />`}<//
  >`;
}

/** Bills are complete about two days later. */
const dayBeforeYesterday = (): string =>
  new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);

function BillForm({ providers }: { providers: readonly string[] }) {
  const [provider, setProvider] = useState(providers[0] ?? "");
  const [from, setFrom] = useState(dayBeforeYesterday());
  const [to, setTo] = useState(from);
  const compare = useCommand<ComparedBill>(BILL_COMMANDS.compare, { changes: false });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    void compare.run({ provider, from, to });
  };
  return html`<${Box} title="Compare with a bill">
      <form class="form" onSubmit=${submit}>
        <div class="filters">
          <${Select} name="Provider" value=${provider} set=${setProvider} options=${providers} />
          <${TextField} name="First day (UTC)" type="date" value=${from} set=${setFrom} />
          <${TextField} name="Last day (UTC)" type="date" value=${to} set=${setTo} />
        </div>
        <button class="button main" type="submit" disabled=${compare.isRunning}>
          ${compare.isRunning ? "Comparing" : "Compare"}
        </button>
      </form>
    <//>
    ${compare.error && html`<${ErrorNote} problem=${compare.error} />`}
    ${compare.value && html`<${BillResult} of=${compare.value} />`}
    <${CommandLineHint} line=${`tollgate reconcile ${provider} --day ${from}`} />`;
}

function BillResult({ of }: { of: ComparedBill }) {
  const causes = Object.entries(of.causes);
  const isEqual = causes.every(([cause]) => cause === "rounding");
  const { corrections, groups } = of;
  return html`<${Figures}
      of=${[
        { name: "Ledger", value: `$${of.oursUsd}` },
        { name: "Bill", value: `$${of.theirsUsd}` },
        {
          name: "Difference",
          value: `$${of.differenceUsd}`,
          note: isEqual ? "only rounding" : `${formatCount(causes.length)} causes`,
          tone: isEqual ? "good" : "warn",
        },
      ]}
    />
    ${corrections.length > 0 && html`<${NoteBox} tone="warn"><p>${formatCount(corrections.length)} calls can be corrected with tollgate reconcile --adjust.</p><//>`}
    ${
      causes.length > 0 &&
      html`<${Box} title="Causes" flush=${true}>
        <${Table}
          label="Causes of the difference"
          columns=${CAUSE_COLUMNS}
          rows=${causes}
          rowId=${([cause]: readonly [string, string]) => cause}
        />
      <//>`
    }
    <${Box} title="Models by day" flush=${true}>
      <${Table}
        label="Ledger and bill by day, model, and credential"
        columns=${groups.some(({ credential }) => credential !== null) ? [...GROUP_COLUMNS.slice(0, 2), CREDENTIAL_COLUMN, ...GROUP_COLUMNS.slice(2)] : GROUP_COLUMNS}
        rows=${groups}
        rowId=${({ day, model, credential }: BillGroup) => `${day} ${model} ${credential}`}
        empty=${html`<${EmptyState} of="ledger"
          ><p>Neither the ledger nor the bill has charges in this period.</p><//
        >`}
      />
    <//>`;
}

const CAUSE_COLUMNS: readonly Column<readonly [cause: string, usd: string]>[] = [
  { name: "Cause", isRowHeader: true, render: ([cause]) => CAUSES[cause] ?? cause },
  {
    name: "Bill minus ledger",
    isNumber: true,
    sortKey: ([, usd]) => Number(usd),
    render: ([, usd]) => `$${usd}`,
  },
];

const CREDENTIAL_COLUMN: Column<BillGroup> = {
  name: "Credential",
  sortKey: ({ credential }) => credential ?? "",
  render: ({ credential, projects, keys }) =>
    html`<span class="cut" title=${[...projects, ...keys].join(", ")}
      >${credential ?? html`<span class="faint">other keys</span>`}</span
    >`,
};

const GROUP_COLUMNS: readonly Column<BillGroup>[] = [
  {
    name: "Day",
    sortKey: ({ day }) => day,
    render: ({ day }) => html`<span class="nowrap">${day}</span>`,
  },
  {
    name: "Model",
    isRowHeader: true,
    sortKey: ({ model }) => model ?? "",
    render: ({ model }) =>
      html`<span class="cut" title=${model}
        >${model ?? html`<span class="faint">other charges</span>`}</span
      >`,
  },
  {
    name: "Calls",
    isNumber: true,
    sortKey: ({ calls }) => calls,
    render: ({ calls }) => formatCount(calls),
  },
  {
    name: "Ledger",
    isNumber: true,
    sortKey: ({ oursUsd }) => Number(oursUsd),
    render: ({ oursUsd }) => `$${oursUsd}`,
  },
  {
    name: "Bill",
    isNumber: true,
    sortKey: ({ theirsUsd }) => Number(theirsUsd),
    render: ({ theirsUsd }) => `$${theirsUsd}`,
  },
  {
    name: "Causes",
    render: ({ differences }) =>
      differences.map(({ cause, usd }) => `${cause} $${usd}`).join(", ") ||
      html`<span class="faint">none</span>`,
  },
];
