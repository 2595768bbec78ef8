// MCP page: the servers with their health, and the tools with their price, calls, cost, and the keys
// that may call them.
import { html } from "htm/preact";
import { useQuery } from "../use-query.ts";
import {
  Badge,
  Box,
  CommandLineHint,
  EmptyState,
  Figures,
  NoteBox,
  QueryResult,
} from "../parts/basics.ts";
import { Table, type Column } from "../parts/table.ts";
import type { UsageReport, UsageRow } from "../api-types.ts";
import { formatCount, formatDuration, formatUsd, timeDaysAgo } from "../format.ts";

interface Server {
  readonly name: string;
  readonly url: string;
  readonly type: "mcp" | "openapi";
  readonly auth: string;
}
interface Tool {
  readonly name: string;
  readonly description: string;
  readonly hash: string;
  readonly priceUsd?: string;
}
interface TestedServer {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly revision?: string;
  readonly tools?: readonly Tool[];
  readonly problem?: string;
}
interface PermittedKey {
  readonly id: string;
  readonly name?: string;
  readonly tools?: readonly string[];
  readonly revoked?: number;
}
interface ToolRow extends Tool {
  readonly server: string;
  readonly usage: UsageRow | undefined;
  readonly keys: readonly string[];
}

export const MCP_COMMANDS = {
  list: "frontends.mcp/servers",
  test: "frontends.mcp/test",
} as const;

const DAYS = 30;
/** Number of keys whose names are shown for a tool. */
const SHOWN_KEYS = 3;

export function McpPage() {
  const servers = useQuery<readonly Server[]>(MCP_COMMANDS.list);
  return html`<${QueryResult} of=${servers}
      >${(of: readonly Server[]) => html`<${Servers} of=${of} />`}<//
    >
    <${CommandLineHint} line="tollgate mcp test" />`;
}

function Servers({ of }: { of: readonly Server[] }) {
  const tested = useQuery<readonly TestedServer[]>(MCP_COMMANDS.test, {}, { intervalMs: 60_000 });
  const usage = useQuery<UsageReport>("ledger.totals", {
    from: timeDaysAgo(DAYS, new Date().setHours(0, 0, 0, 0)),
    by: ["model"],
  });
  const keys = useQuery<{ keys: readonly PermittedKey[] }>("keys.list");
  const rows = toolRows(tested.value ?? [], usage.value, keys.value?.keys ?? []);
  const calls = rows.reduce((sum, row) => sum + (row.usage?.calls ?? 0), 0);
  const cost = rows.reduce((sum, row) => sum + BigInt(row.usage?.costNano ?? 0), 0n);
  const failed = (tested.value ?? []).filter(({ ok }) => !ok).length;
  return html`<${Figures}
      of=${[
        {
          name: "Servers",
          value: formatCount(of.length),
          note: failed > 0 ? `${formatCount(failed)} cannot be used` : "",
          tone: failed > 0 ? "bad" : "",
        },
        { name: "Tools", value: formatCount(rows.length) },
        { name: `Calls in ${DAYS} days`, value: formatCount(calls) },
        { name: `Cost in ${DAYS} days`, value: formatUsd(String(cost)) },
      ]}
    />
    <${Box} title="Servers" flush=${true}>
      <${Table}
        label="MCP servers"
        rows=${of.map((each) => ({
          ...each,
          tested: tested.value?.find(({ name }) => name === each.name),
        }))}
        rowId=${({ name }: Server) => name}
        columns=${SERVER_COLUMNS}
        empty=${html`<${EmptyState} of="providers"><p>No server is configured.</p><//>`}
      />
    <//>
    ${tested.error && html`<${NoteBox} tone="warn">The servers could not be tested.<//>`}
    <${Box} title="Tools" flush=${true}>
      <${Table}
        label="Tools, with the keys that may call them"
        rows=${rows}
        rowId=${({ server, name }: ToolRow) => `${server}/${name}`}
        columns=${TOOL_COLUMNS}
        empty=${html`<${EmptyState} of="models"
          ><p>${tested.isLoading ? "The servers are being tested." : "No tool is offered."}</p><//
        >`}
      />
    <//>`;
}

function toolRows(
  servers: readonly TestedServer[],
  usage: UsageReport | undefined,
  keys: readonly PermittedKey[],
): ToolRow[] {
  const byModel = new Map(usage?.rows.map((row) => [row.by["model"], row]));
  return servers.flatMap(({ name: server, tools = [] }) =>
    tools.map((tool) => ({
      ...tool,
      server,
      usage: byModel.get(`mcp:${server}/${tool.name}`),
      keys: keys
        .filter((key) => key.revoked === undefined && mayCall(key, `${server}/${tool.name}`))
        .map(({ id, name }) => name ?? id),
    })),
  );
}

/** Whether a pattern of the key matches. Its accounts can restrict it further. */
const mayCall = ({ tools }: PermittedKey, tool: string): boolean =>
  tools === undefined || tools.some((pattern) => matches(pattern.split("*"), tool));

function matches([first = "", ...rest]: readonly string[], text: string): boolean {
  if (!text.startsWith(first)) return false;
  const last = rest.pop();
  if (last === undefined) return text === first;
  let from = first.length;
  for (const part of rest) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return text.length - last.length >= from && text.endsWith(last);
}

type ServerRow = Server & { readonly tested: TestedServer | undefined };

const AUTHS: Readonly<Record<string, string>> = {
  none: "none",
  token: "token",
  client_credentials: "client credentials",
  token_exchange: "token exchange",
  user: "account of each user",
};

const SERVER_COLUMNS: readonly Column<ServerRow>[] = [
  {
    name: "Server",
    isRowHeader: true,
    sortKey: ({ name }) => name,
    render: ({ name, url }) =>
      html`<span class="cut">${name}</span
        ><span class="small faint cut" title=${url}>${url}</span>`,
  },
  {
    name: "Health",
    sortKey: ({ tested }) => (tested?.ok ? 1 : 0),
    render: ({ tested, auth }) =>
      tested === undefined
        ? html`<${Badge}>testing<//>`
        : tested.ok
          ? html`<${Badge} tone="good">${formatDuration(tested.ms)}<//>`
          : auth === "user"
            ? html`<${Badge} title=${tested.problem}>needs an account<//>`
            : html`<${Badge} tone="bad">failed<//
                ><span class="small faint cut" title=${tested.problem}>${tested.problem}</span>`,
  },
  {
    name: "Type",
    sortKey: ({ type }) => type,
    render: ({ type, tested }) =>
      type === "openapi" ? "OpenAPI" : `MCP${tested?.revision ? ` ${tested.revision}` : ""}`,
  },
  {
    name: "Credential",
    sortKey: ({ auth }) => auth,
    render: ({ auth }) => AUTHS[auth] ?? auth,
  },
  {
    name: "Tools",
    isNumber: true,
    sortKey: ({ tested }) => tested?.tools?.length ?? 0,
    render: ({ tested }) => (tested?.tools ? formatCount(tested.tools.length) : "–"),
  },
];

const TOOL_COLUMNS: readonly Column<ToolRow>[] = [
  {
    name: "Tool",
    isRowHeader: true,
    sortKey: ({ server, name }) => `${server}/${name}`,
    render: ({ server, name, description, hash }) =>
      html`<span class="cut" title=${`SHA-256 ${hash}`}>${server}/${name}</span
        ><span class="small faint cut" title=${description}>${description}</span>`,
  },
  {
    name: "Keys",
    sortKey: ({ keys }) => keys.length,
    render: ({ keys }) =>
      keys.length === 0
        ? html`<${Badge} tone="warn">no key<//>`
        : html`<span class="cut" title=${keys.join(", ")}
            >${keys.slice(0, SHOWN_KEYS).join(", ")}${keys.length > SHOWN_KEYS ? ` and ${formatCount(keys.length - SHOWN_KEYS)} more` : ""}</span
          >`,
  },
  {
    name: "Price",
    isNumber: true,
    sortKey: ({ priceUsd = "0" }) => Number(priceUsd),
    render: ({ priceUsd }) => (priceUsd === undefined ? "free" : `$${priceUsd}`),
  },
  {
    name: "Calls",
    isNumber: true,
    sortKey: ({ usage }) => usage?.calls ?? 0,
    render: ({ usage }) => formatCount(usage?.calls ?? 0),
  },
  {
    name: "Cost",
    isNumber: true,
    sortKey: ({ usage }) => Number(usage?.costNano ?? 0),
    render: ({ usage }) => formatUsd(usage?.costNano ?? "0"),
  },
];
