// Accounts as a tree with budget bars, and keys as a table.
import { html } from "htm/preact";
import { useMemo, useState } from "preact/hooks";
import { useQuery } from "../../use-query.ts";
import { type UsedLimit, LimitBar } from "../../limits.ts";
import { Checkbox, Select, TextField } from "../../parts/fields.ts";
import { Box, EmptyState, Badge } from "../../parts/basics.ts";
import { Table } from "../../parts/table.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import type { UsageReport } from "../../api-types.ts";
import { formatAgo, formatCount, timeDaysAgo, formatDateTime, readerZone } from "../../format.ts";
import { type Account, limitBars, type Key, displayName, STATE_TONES } from "./keys-form.ts";

export function AccountTable({
  accounts,
  open,
  chosen,
  make,
}: {
  accounts: readonly Account[];
  open: (id: string) => void;
  chosen: string;
  make: () => void;
}) {
  const rows = useMemo(() => accounts.toSorted((a, b) => (a.path < b.path ? -1 : 1)), [accounts]);
  return html`<${Box} flush=${true} title="Accounts">
    <${Table}
      label="Accounts"
      rows=${rows}
      rowId=${(row: Account) => row.id}
      onOpen=${(row: Account) => open(row.id)}
      selectedId=${chosen}
      empty=${html`<${EmptyState} of="accounts"
        ><p>
          An account is a budget that several keys share: an organization, a team in it, or a
          project. Accounts nested under it can only have stricter limits.
        </p>
        ${isAllowed("accounts.create") && html`<button type="button" class="button" onClick=${make}>Create an account</button>`}<//
      >`}
      columns=${ACCOUNT_COLUMNS}
    />
  <//>`;
}

const fileAndLine = (from: string): string => from.slice(from.lastIndexOf("/") + 1);

const renderBars = (row: {
  id: string;
  limits?: readonly string[];
  limitUsage?: readonly UsedLimit[];
}) =>
  (row.limits?.length ?? 0) === 0
    ? html`<span class="faint small">no limits of its own</span>`
    : html`<div class="stack tight">
        ${limitBars(row).map((limit, at) => html`<${LimitBar} limit=${limit} own=${row.id} key=${at} />`)}
      </div>`;

export function KeyTable({
  keys,
  accounts,
  open,
  chosen,
  make,
}: {
  keys: readonly Key[];
  accounts: readonly Account[];
  open: (id: string) => void;
  chosen: string;
  make: () => void;
}) {
  const [search, setSearch] = useQueryParam("q");
  const [account, setAccount] = useState("");
  const [ended, showEnded] = useState(false);
  const used = useLastUsed();
  const word = search.toLowerCase();
  const rows = keys.filter(
    (key) =>
      (ended || key.state === "valid") &&
      (!account || key.account === account) &&
      `${key.name ?? ""} ${key.id} ${key.account ?? ""} ${Object.values(key.labels ?? {}).join(" ")}`
        .toLowerCase()
        .includes(word),
  );
  return html`<div class="filters">
      <${TextField}
        name="Search keys"
        type="search"
        wide=${true}
        value=${search}
        set=${setSearch}
        placeholder="name, ID, label"
      />
      <${Select}
        name="Account"
        value=${account}
        set=${setAccount}
        options=${[["", "all"], ...accounts.map((each) => [each.id, displayName(each)] as const)]}
      />
      <${Checkbox} name="Show revoked and expired" value=${ended} set=${showEnded} />
    </div>
    <${Box}
      flush=${true}
      title=${`${formatCount(rows.length)} ${rows.length === 1 ? "key" : "keys"}`}
    >
      <${Table}
        label="Keys"
        rows=${rows}
        rowId=${(row: Key) => `${row.id} ${row.created}`}
        onOpen=${(row: Key) => open(row.id)}
        selectedId=${chosen}
        empty=${html`<${EmptyState} of="keys"
          ><p>
            ${keys.length === 0 ? "A client needs a key to send requests. The secret is shown once, with the settings for each client." : "No key matches these filters."}
          </p>
          ${isAllowed("keys.create") && html`<button type="button" class="button main" onClick=${make}>New key</button>`}<//
        >`}
        columns=${used ? [...KEY_COLUMNS.slice(0, 3), lastUsedColumn(used), ...KEY_COLUMNS.slice(3)] : KEY_COLUMNS}
      />
    <//>`;
}

/** Number of days to search for the last use. */
const LOOKBACK_DAYS = 30;

/** Returns the newest day with a call for each key, or undefined while loading. */
function useLastUsed(): ReadonlyMap<string, string> | undefined {
  const today = new Date().setHours(0, 0, 0, 0);
  const days = useQuery<UsageReport>(
    "ledger.totals",
    { from: timeDaysAgo(LOOKBACK_DAYS, today), by: ["key", "day"], tz: readerZone() },
    { intervalMs: 60_000 },
  );
  return useMemo(() => {
    if (!days.value) return undefined;
    const newest = new Map<string, string>();
    for (const { by } of days.value.rows) {
      const [key, day] = [by["key"]!, by["day"]!];
      if (day > (newest.get(key) ?? "")) newest.set(key, day);
    }
    return newest;
  }, [days.value]);
}

const lastUsedColumn = (used: ReadonlyMap<string, string>) => ({
  name: "Last used",
  sortKey: (row: Key) => used.get(row.id) ?? "",
  render: (row: Key) => {
    const day = used.get(row.id);
    if (day === undefined)
      return html`<span class="faint small">not in ${LOOKBACK_DAYS} days</span>`;
    return html`<span class="small nowrap" title=${day}>${formatDayAgo(day)}</span>`;
  },
});

/** Formats a day relative to today: "2026-11-28" → "today". */
function formatDayAgo(day: string): string {
  const days = Math.round(
    (new Date().setHours(0, 0, 0, 0) - new Date(`${day}T00:00`).getTime()) / 86_400_000,
  );
  return days <= 0 ? "today" : days === 1 ? "yesterday" : `${days} days ago`;
}

const ACCOUNT_COLUMNS = [
  {
    name: "Account",
    isRowHeader: true,
    render: (row: Account) =>
      html`<span class=${`depth${Math.min(3, row.path.split("/").length - 1)}`}
        ><a href=${buildUrl("/keys", { account: row.id })}>${displayName(row)}</a
        >${row.name && html` <span class="faint small">${row.id}</span>`}</span
      >`,
  },
  {
    name: "State",
    render: (row: Account) => html`<${Badge} tone=${STATE_TONES[row.state]}>${row.state}<//>`,
  },
  { name: "Limits and budgets", render: (row: Account) => renderBars(row) },
  { name: "Keys", isNumber: true, render: (row: Account) => formatCount(row.keyCount) },
  {
    name: "Defined in",
    render: (row: Account) =>
      html`<span class="small faint break"
        >${row.definedAt ? fileAndLine(row.definedAt) : "store"}</span
      >`,
  },
];

const KEY_COLUMNS = [
  {
    name: "Key",
    isRowHeader: true,
    sortKey: (row: Key) => displayName(row),
    render: (row: Key) =>
      html`<a href=${buildUrl("/keys", { key: row.id })} class="break">${displayName(row)}</a
        >${row.name && html`<div class="faint small mono">${row.id}</div>`}`,
  },
  {
    name: "State",
    sortKey: (row: Key) => row.state,
    render: (row: Key) => html`<${Badge} tone=${STATE_TONES[row.state]}>${row.state}<//>`,
  },
  {
    name: "Account",
    sortKey: (row: Key) => row.account ?? "",
    render: (row: Key) =>
      row.account
        ? html`<a href=${buildUrl("/keys", { account: row.account })}>${row.account}</a>`
        : html`<span class="faint">none</span>`,
  },
  { name: "Limits and budgets", render: (row: Key) => renderBars(row) },
  {
    name: "Models",
    render: (row: Key) =>
      html`<span class="cut small" title=${row.models?.join(", ")}
        >${row.models?.join(", ") ?? "all"}</span
      >`,
  },
  {
    name: "Created",
    sortKey: (row: Key) => row.created,
    render: (row: Key) =>
      html`<span class="nowrap small" title=${formatDateTime(row.created)}
        >${formatAgo(row.created)}</span
      >`,
  },
  {
    name: "Expires",
    sortKey: (row: Key) => row.expires ?? Infinity,
    render: (row: Key) =>
      row.expires
        ? html`<span class="nowrap small" title=${formatDateTime(row.expires)}
            >${formatAgo(row.expires)}</span
          >`
        : html`<span class="faint small">never</span>`,
  },
];
