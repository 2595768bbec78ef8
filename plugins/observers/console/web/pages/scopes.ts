// Scopes page: the scopes of gateway.yaml, and the members of one scope with the usage of their
// limits. Operators can reset a member.
import { html } from "htm/preact";
import { useCommand, useQuery } from "../use-query.ts";
import {
  Badge,
  Box,
  CommandLineHint,
  EmptyState,
  ErrorNote,
  Figures,
  QueryResult,
} from "../parts/basics.ts";
import { Select, TextField } from "../parts/fields.ts";
import { ConfirmButton, toast } from "../parts/overlay.ts";
import { Table, type Column } from "../parts/table.ts";
import { useQueryParam } from "../location.ts";
import { LimitBar, type UsedLimit } from "../limits.ts";
import { isAllowed } from "../session.ts";
import { formatCount, formatDuration } from "../format.ts";

interface Scope {
  readonly name: string;
  readonly from: readonly string[];
  readonly within: "key" | "account" | "gateway";
  readonly limits: readonly string[];
  readonly overflow: "refuse" | "warn" | "downgrade";
  readonly downgradeModel?: string;
  readonly maxMembers: number;
  readonly idleMs: number;
}
interface Member {
  readonly value: string;
  readonly key?: string;
  readonly keyName?: string;
  readonly account?: string;
  readonly calls: number;
  readonly costUsd: string;
  readonly limitUsage?: readonly UsedLimit[];
}
interface ScopeDetails {
  readonly scope: Scope;
  readonly members?: readonly Member[];
  readonly memberCount?: number;
  readonly limitUsage?: readonly UsedLimit[];
}

const POLL_MS = 5_000;

export function ScopesPage() {
  const scopes = useQuery<{ readonly scopes: readonly Scope[] }>("scopes.list");
  return html`<${QueryResult} of=${scopes}
    >${(of: { readonly scopes: readonly Scope[] }) =>
      of.scopes.length === 0
        ? html`<${EmptyState} of="accounts"
            ><p>No scopes. Add them under <code>scopes</code> in gateway.yaml.</p><//
          >`
        : html`<${ScopeView} scopes=${of.scopes} />`}<//
  >`;
}

function ScopeView({ scopes }: { scopes: readonly Scope[] }) {
  const [name, setName] = useQueryParam("scope", scopes[0]!.name);
  const [search, setSearch] = useQueryParam("q");
  const scope = scopes.find((each) => each.name === name) ?? scopes[0]!;
  const input = { name: scope.name, ...(search !== "" && { search }) };
  const details = useQuery<ScopeDetails>("scopes.show", input, { intervalMs: POLL_MS });
  return html`<div class="row">
      <${Select}
        name="Scope"
        value=${scope.name}
        set=${setName}
        options=${scopes.map((each) => each.name)}
      />
      ${
        scope.from.length > 0 &&
        html`<${TextField} name="Search" type="search" value=${search} set=${setSearch} />`
      }
    </div>
    <${QueryResult} of=${details}
      >${(of: ScopeDetails) => html`<${Details} of=${of} again=${details.refetch} />`}<//
    >
    <${CommandLineHint}
      line=${`tollgate scopes show ${scope.name}${search === "" ? "" : ` --search ${search}`}`}
    />`;
}

const OVERFLOW: Readonly<Record<Scope["overflow"], string>> = {
  refuse: "Reject",
  warn: "Warn",
  downgrade: "Downgrade",
};

function Details({ of, again }: { of: ScopeDetails; again: () => void }) {
  const { scope, members, memberCount = 0, limitUsage = [] } = of;
  const over = (members ?? []).filter(isOver).length;
  const isGroup = scope.from.length > 0;
  return html`<${Figures}
      of=${[
        ...(isGroup
          ? [
              { name: "Members in 24 hours", value: formatCount(memberCount) },
              {
                name: "At a limit",
                value: formatCount(over),
                tone: over > 0 ? ("warn" as const) : ("" as const),
              },
              { name: "Maximum per owner", value: formatCount(scope.maxMembers) },
              { name: "Idle time", value: formatDuration(scope.idleMs) },
            ]
          : []),
        {
          name: "Above a limit",
          value: OVERFLOW[scope.overflow],
          ...(scope.downgradeModel !== undefined && { note: scope.downgradeModel }),
        },
      ]}
    />
    ${
      isGroup
        ? html`<${Members} scope=${scope} members=${members ?? []} again=${again} />`
        : html`<${Box} title="Limits">${renderBars(limitUsage)}<//>`
    }
    ${
      members !== undefined && memberCount > members.length
        ? html`<p class="small quiet in">
            ${formatCount(memberCount - members.length)} members with a lower cost are not shown.
          </p>`
        : null
    }`;
}

/** Whether the member has used all of one of its limits. */
const isOver = ({ limitUsage = [] }: Member): boolean =>
  limitUsage.some(({ remaining }) => Number(remaining) <= 0);

const renderBars = (limits: readonly UsedLimit[]) =>
  limits.map((limit, i) => html`<${LimitBar} limit=${limit} key=${i} />`);

interface MembersProps {
  readonly scope: Scope;
  readonly members: readonly Member[];
  readonly again: () => void;
}

function Members({ scope, members, again }: MembersProps) {
  const reset = useCommand<unknown>("scopes.reset");
  const run = async ({ value, key, account }: Member) => {
    if (!(await reset.run({ name: scope.name, value, key, account }))) return;
    toast(`${value} was reset.`);
    again();
  };
  const actions: Column<Member> = {
    name: "",
    render: (one) =>
      // The value of a member without usage may be a hash, which names no member.
      one.limitUsage &&
      html`<${ConfirmButton}
        name="Reset"
        what=${`Reset the usage of ${one.value}`}
        run=${() => void run(one)}
      />`,
  };
  const columns = COLUMNS.filter(({ name }) => name !== "Owner" || scope.within !== "gateway");
  return html`<${Box} title=${`Members of ${scope.name}`} flush=${true}>
    ${reset.error && html`<${ErrorNote} problem=${reset.error} />`}
    <${Table}
      label=${`Members of ${scope.name}, the most expensive first`}
      rows=${members}
      rowId=${({ value, key, account }: Member) => `${key ?? account ?? ""} ${value}`}
      columns=${isAllowed("scopes.reset") ? [...columns, actions] : columns}
      empty=${html`<${EmptyState} of="accounts"
        ><p>No member has used this scope in the last 24 hours.</p><//
      >`}
    />
  <//>`;
}

const ownerOf = ({ keyName, key, account }: Member): string => keyName ?? key ?? account ?? "";
const shareOf = ({ limitUsage = [] }: Member): number =>
  Math.max(0, ...limitUsage.map(({ used, max }) => Number(used) / Math.max(1, Number(max))));

const COLUMNS: readonly Column<Member>[] = [
  {
    name: "Member",
    isRowHeader: true,
    sortKey: ({ value }) => value,
    render: (one) =>
      html`<span class="cut" title=${one.value}>${one.value}</span>${
          isOver(one) && html`<${Badge} tone="warn">at a limit<//>`
        }`,
  },
  {
    name: "Owner",
    sortKey: ownerOf,
    render: (one) => html`<span class="cut">${ownerOf(one)}</span>`,
  },
  {
    name: "Limits",
    sortKey: shareOf,
    render: ({ limitUsage }) =>
      limitUsage ? renderBars(limitUsage) : html`<span class="faint">–</span>`,
  },
  {
    name: "Requests",
    isNumber: true,
    sortKey: ({ calls }) => calls,
    render: ({ calls }) => formatCount(calls),
  },
  {
    name: "Cost in 24 hours",
    isNumber: true,
    sortKey: ({ costUsd }) => Number(costUsd),
    render: ({ costUsd }) => `$${costUsd}`,
  },
];
